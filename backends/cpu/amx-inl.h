// Products of rows by a matrix that is packed for AMX (amx.h).
#if defined(PLUMB_CPU_AMX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_AMX_INL
#undef PLUMB_CPU_AMX_INL
#else
#define PLUMB_CPU_AMX_INL
#endif

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "backends/cpu/amx.h"
#include "backends/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Returns the elements of x from `begin` on. Elements from number `end` on are 0.
template <class X>
HWY_INLINE V load_before(const X* x, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return zero();
  return begin + W <= end ? load(x + begin, Whole{}) : load(x + begin, Part{end - begin});
}

// Packs a tile of a matrix w [K, N] whose rows begin `stride` elements apart, rounded to bf16: 32 rows from k on, 16
// columns from n on.
template <class X>
HWY_INLINE void pack_tile(const X* w, std::int64_t stride, std::int64_t k, std::int64_t n, std::int64_t K,
                          std::int64_t N, std::uint32_t* tile) {
#if HWY_TARGET == HWY_AVX3  // whole tiles of bf16: one permutation alternates the elements of two rows of w
  if constexpr (std::is_same_v<X, bfloat16>)
    if (k + tile_depth <= K && n + tile_side <= N) {
      alignas(64) static constexpr std::uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                              21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                              11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
      const __m512i pairs = _mm512_load_si512(order);
      for (std::int64_t i = 0; i < tile_depth / 2; ++i) {
        const X* const x = w + (k + 2 * i) * stride + n;
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)),
                      high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + stride));
        const __m512i rows = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
        _mm512_storeu_si512(tile + i * tile_side, _mm512_permutexvar_epi16(pairs, rows));
      }
      return;
    }
#endif
  // The bf16 of a row, each in the lower half of 32 bits.
  const auto row = [&](std::int64_t k_row, std::int64_t column) HWY_ATTR {
    if (k_row >= K) return hn::Zero(f32_bits);
    const X* const x = w + k_row * stride;
    if constexpr (std::is_same_v<X, bfloat16>)
      if (column + W <= N) return hn::PromoteTo(f32_bits, hn::LoadU(half_bits, bits_of(x + column)));
    return hn::PromoteTo(f32_bits, narrow(load_before(x, column, N)));
  };
  for (std::int64_t i = 0; i < tile_depth / 2; ++i)
    for (std::int64_t c = 0; c < tile_side; c += W) {
      const auto low = row(k + 2 * i, n + c), high = row(k + 2 * i + 1, n + c);
      hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), f32_bits, tile + i * tile_side + c);
    }
}

// Packs `rows` rows of b, a number of whole steps from `step` on (the last step of b may have fewer rows). The rows
// begin at w, `stride` elements apart.
template <class X>
HWY_INLINE void pack_rows(AmxMatrix& b, std::int64_t step, std::int64_t rows, const X* w, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; r += tile_depth)
    for (std::int64_t panel = 0; panel < b.panels(); ++panel)
      for (int t = 0; t < b.tiles(panel); ++t)
        pack_tile(w, stride, r, (2 * panel + t) * tile_side, rows, b.N(), b.tile(panel, step + r / tile_depth, t));
}

// Transposes a tile of 16 x 16 elements of 32 bits. The rows of `tile` begin `row` elements apart, those of `to`
// `to_row` elements.
HWY_INLINE void transpose_tile(const std::uint32_t* tile, std::int64_t row, std::uint32_t* to, std::int64_t to_row) {
#if HWY_TARGET == HWY_AVX3
  // First, each 4 x 4 elements are transposed in the lanes of 128 bits, then the 4 x 4 lanes.
  __m512i r[16], v[16];
  for (int i = 0; i < 16; i += 4) {
    for (int j = i; j < i + 4; ++j) r[j] = _mm512_loadu_si512(tile + j * row);
    const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]), b = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]),
                  c = _mm512_unpackhi_epi32(r[i], r[i + 1]), d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
    v[i] = _mm512_unpacklo_epi64(a, b);
    v[i + 1] = _mm512_unpackhi_epi64(a, b);
    v[i + 2] = _mm512_unpacklo_epi64(c, d);
    v[i + 3] = _mm512_unpackhi_epi64(c, d);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x44), b = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x44),
                  c = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xee), d = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xee);
    _mm512_storeu_si512(to + j * to_row, _mm512_shuffle_i32x4(a, b, 0x88));
    _mm512_storeu_si512(to + (4 + j) * to_row, _mm512_shuffle_i32x4(a, b, 0xdd));
    _mm512_storeu_si512(to + (8 + j) * to_row, _mm512_shuffle_i32x4(c, d, 0x88));
    _mm512_storeu_si512(to + (12 + j) * to_row, _mm512_shuffle_i32x4(c, d, 0xdd));
  }
#else
  transpose(reinterpret_cast<const float*>(tile), tile_side, tile_side, row, reinterpret_cast<float*>(to), to_row);
#endif
}

// Packs a tile as pack_tile() does, and writes the transpose of the packed tile: 16 rows of 32 elements of bf16, which
// begin `to_stride` elements apart.
template <class X>
HWY_INLINE void pack_rows_of_transpose(const X* w, std::int64_t stride, std::int64_t k, std::int64_t n, std::int64_t K,
                                       std::int64_t N, bfloat16* to, std::int64_t to_stride) {
  HWY_ALIGN std::uint32_t tile[tile_side * tile_depth / 2];
  pack_tile(w, stride, k, n, K, N, tile);
  transpose_tile(tile, tile_side, pairs_of(to), to_stride / 2);
}

// The operand a of products a B, for B [K, N]: `rows` rows of bf16 that begin `stride` elements apart. A product reads
// whole tiles: rows up to a multiple of tile_side, and columns up to a multiple of tile_depth. The columns from K on
// must be 0. The rows after `rows` may hold any values, because their results are not used.
struct AmxRows {
  const bfloat16* data;
  std::int64_t stride, rows;
};

// Memory for AmxRows, padded with zeros to a multiple of tile_depth in both directions. Therefore the transpose also
// consists of whole tiles.
class PaddedRows {
 public:
  PaddedRows(std::int64_t most, std::int64_t columns)
      : all_rows_(round_up(most, tile_depth)),
        columns_(columns),
        stride_(round_up(columns, tile_depth)),
        zeros_from_(all_rows_),
        memory_(all_rows_ * stride_ / 2) {}
  // Returns memory for `rows` rows, and sets the rows after them to 0. The writer of a row must fill the row with zeros
  // up to `stride` elements.
  bfloat16* start_block(std::int64_t rows) {
    if (rows < zeros_from_) std::fill_n(data() + rows * stride_, (zeros_from_ - rows) * stride_, bfloat16(0.0f));
    rows_ = zeros_from_ = rows;
    return data();
  }
  // Copies rows that begin `x_stride` elements apart.
  void read(const bfloat16* x, std::int64_t rows, std::int64_t x_stride) {
    constexpr hn::ScalableTag<std::uint16_t> bits;
    constexpr std::int64_t lanes = 2 * W;
    const std::int64_t columns = columns_, stride = stride_;
    bfloat16* to = start_block(rows);
    for (const bfloat16* const end = to + rows * stride; to != end; to += stride, x += x_stride) {
      std::int64_t i = 0;
      for (; i + lanes <= columns; i += lanes) hn::StoreU(hn::LoadU(bits, bits_of(x + i)), bits, bits_of(to + i));
      if (i == stride) continue;
      for (; i + W <= columns; i += W) hn::StoreU(hn::LoadU(half_bits, bits_of(x + i)), half_bits, bits_of(to + i));
      for (; i < columns; ++i) to[i] = x[i];
      for (; i < stride; ++i) to[i] = bfloat16(0.0f);
    }
  }
  bfloat16* data() const { return reinterpret_cast<bfloat16*>(memory_.data()); }
  std::int64_t stride() const { return stride_; }
  std::int64_t all_rows() const { return all_rows_; }
  // The rows as the operand a.
  AmxRows left() const { return {data(), stride_, rows_}; }

 private:
  std::int64_t all_rows_, columns_, stride_, rows_ = 0, zeros_from_;
  Scratch memory_;
};

// The rows `a` [rows, K] as AmxRows: the rows themselves if they fill whole tiles, else a padded copy. The memory of
// `rows_after` more rows of `a` may be read.
class WholeTiles {
 public:
  WholeTiles(const bfloat16* a, std::int64_t rows, std::int64_t K, std::int64_t rows_after) : left_{a, K, rows} {
    if (K % tile_depth == 0 && round_up(rows, tile_side) <= rows + rows_after) return;
    copy_.emplace(rows, K).read(a, rows, K);
    left_ = copy_->left();
  }
  const AmxRows& left() const { return left_; }

 private:
  std::optional<PaddedRows> copy_;
  AmxRows left_;
};

// Calls f(product, row, column) for each block of up to 2 x 2 tiles of a product a B over some steps. The block has the
// rows from `row` and the columns from `column` on. f completes `product` with the place of its sums, and computes it.
template <class F>
HWY_INLINE void each_block(const AmxRows& a, const AmxMatrix& b, AmxSteps steps, F&& f) {
  for (std::int64_t panel = 0; panel < b.panels(); ++panel)
    for (std::int64_t row = 0; row < a.rows; row += block_side)
      f(AmxProduct{.a = a.data + row * a.stride,
                   .a_row = a.stride,
                   .b = b.panel(panel, steps.first),
                   .steps = steps.count,
                   .start = nullptr,
                   .start_row = 0,
                   .c = nullptr,
                   .c_row = 0,
                   .rows = a.rows - row > tile_side ? 2 : 1,
                   .columns = b.tiles(panel)},
        row, panel * block_side);
}

// Computes c = a B over some steps. Also writes c up to whole tiles. If `accumulate`, adds the product to c. The rows
// of c begin `c_row` floats apart. The first a.rows rows of each of `ahead` are prefetched.
HWY_INLINE void multiply_amx(const AmxScope& amx, const AmxRows& a, const AmxMatrix& b, AmxSteps steps, float* c,
                             std::int64_t c_row, bool accumulate, std::span<const Ahead> ahead = {}) {
  const std::int64_t blocks = b.panels() * ((a.rows + block_side - 1) / block_side);
  std::int64_t block = 0;
  each_block(a, b, steps, [&](AmxProduct p, std::int64_t row, std::int64_t column) HWY_ATTR {
    for (const Ahead& x : ahead) x.prefetch(a.rows * block / blocks, a.rows * (block + 1) / blocks);
    ++block;
    p.c = c + row * c_row + column;
    p.c_row = p.start_row = c_row;
    if (accumulate) p.start = p.c;
    amx.multiply(p);
  });
}

// A block of the result of a product: rows from `row` and columns from `column` on. Row r of the block begins at
// u + r * stride.
struct ProductBlock {
  const float* u;
  std::int64_t stride, row, rows, column, columns;
};

// Computes a B + bias. `bias` is null, or [N rounded up to a multiple of 16]. Calls finish(ProductBlock) for blocks of
// up to 32 x 32 results, which are in the first-level cache.
template <class Finish>
HWY_INLINE void multiply_amx(const AmxRows& a, const AmxMatrix& b, const float* bias, Finish&& finish) {
  HWY_ALIGN float u[block_side * block_side];
  const AmxScope amx;
  each_block(a, b, b.all_steps(), [&](AmxProduct p, std::int64_t row, std::int64_t column) HWY_ATTR {
    if (bias) p.start = bias + column;
    p.c = u;
    p.c_row = block_side;
    amx.multiply(p);
    finish(ProductBlock{u, block_side, row, std::min(block_side, a.rows - row), column,
                        std::min(block_side, b.N() - column)});
  });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
