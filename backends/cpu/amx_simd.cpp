// Packs matrices for AMX, and sums products over rows (amx.h).
#include <algorithm>

#include "backends/cpu/amx.h"
#include "backends/cpu/parallel.h"
#include "core/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/amx_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Packs the steps from `begin` to `end - 1` of all panels of the matrix w^T, for w [N, K]. Step s of panel p has the
// number s * panels + p, so that the rows of w are read in order.
void AmxPackTranspose(AmxMatrix& b, const float* w, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN bfloat16 rows[tile_side * tile_depth];
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t panel = i % b.panels(), step = i / b.panels(), k = step * tile_depth;
    for (int t = 0; t < b.tiles(panel); ++t) {
      const std::int64_t n = (2 * panel + t) * tile_side;
      std::fill_n(rows, tile_side * tile_depth, bfloat16(0.0f));
      for (std::int64_t r = 0; r < std::min(tile_side, b.N() - n); ++r)
        for_lanes(std::min(tile_depth, b.K() - k), [&](std::int64_t j, auto part) HWY_ATTR {
          store(load(w + (n + r) * b.K() + k + j, part), rows + r * tile_depth + j, part);
        });
      transpose_tile(pairs_of(rows), tile_depth / 2, b.tile(panel, step, t), tile_side);
    }
  }
}

// Packs the steps from `begin` to `end - 1` of the matrix w [K, N].
void AmxPackRows(AmxMatrix& b, const float* w, std::int64_t begin, std::int64_t end) {
  const std::int64_t k = begin * tile_depth;
  pack_rows(b, begin, std::min(b.K(), end * tile_depth) - k, w + k * b.N(), b.N());
}

// The number of steps whose products are added in registers, before the sums go to memory.
constexpr std::int64_t chunk_steps = 16;

// Computes the rows from `first` to `last - 1` of y = a^T B, for a [K, m] and B [K, N]. `first` is a multiple of 32.
// The rows of y begin `y_row` floats apart, and y has memory for whole tiles.
void AmxTransposedProduct(const AmxMatrix& b, const bfloat16* a, std::int64_t m, std::int64_t first, std::int64_t last,
                          float* y, std::int64_t y_row) {
  const std::int64_t tiles = (last - first + tile_side - 1) / tile_side;
  // The rows of a^T for a chunk. A step more in each row spreads the rows over the sets of the cache.
  constexpr std::int64_t stride = (chunk_steps + 1) * tile_depth;
  const Scratch room(tiles * tile_side * stride / 2);
  auto* const rows = reinterpret_cast<bfloat16*>(room.data());
  const AmxScope amx;
  for (std::int64_t begin = 0; begin < b.steps(); begin += chunk_steps) {
    const std::int64_t steps = std::min(chunk_steps, b.steps() - begin);
    for (std::int64_t s = 0; s < steps; ++s)
      for (std::int64_t t = 0; t < tiles; ++t)
        pack_rows_of_transpose(a, m, (begin + s) * tile_depth, first + t * tile_side, b.K(), m,
                               rows + t * tile_side * stride + s * tile_depth, stride);
    multiply_amx(amx, {rows, stride, last - first}, b, {begin, steps}, y + first * y_row, y_row, begin > 0);
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AmxPackTranspose);
HWY_EXPORT(AmxPackRows);
HWY_EXPORT(AmxTransposedProduct);

AmxMatrix::AmxMatrix(std::int64_t K, std::int64_t N, const float* w, bool transposed) : AmxMatrix(K, N) {
  // A block of work packs about 4096 elements.
  if (transposed)
    parallel_for(panels() * steps(), 4096 / (block_side * tile_depth), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(AmxPackTranspose)(*this, w, begin, end);
    });
  else
    parallel_for(steps(), std::max<std::int64_t>(1, 4096 / (tile_depth * std::max<std::int64_t>(1, N))),
                 [&](std::int64_t begin, std::int64_t end) {
                   HWY_DYNAMIC_DISPATCH(AmxPackRows)(*this, w, begin, end);
                 });
}

void amx_product_over_rows(std::int64_t m, const bfloat16* a, const AmxMatrix& b, float* y) {
  const std::int64_t n = b.N(), k = b.K();
  internal_check(m > 0 && n > 0 && k > 0, "expected a product with elements, got {} x {} x {}", m, k, n);
  // Whole tiles are computed. If y has none, they go through a copy.
  const bool whole = m % tile_side == 0 && n % tile_side == 0;
  const std::int64_t y_row = round_up(n, tile_side);
  const Scratch copy(whole ? 0 : round_up(m, tile_side) * y_row);
  float* const to = whole ? y : copy.data();
  const std::int64_t rows = round_up((m + fixed_parts - 1) / fixed_parts, block_side);
  parallel_for(
      m, rows,
      [&](std::int64_t first, std::int64_t last) {
        HWY_DYNAMIC_DISPATCH(AmxTransposedProduct)(b, a, m, first, last, to, y_row);
      },
      2 * m * n * k < small_product ? m + 1 : 2);
  if (whole) return;
  for (std::int64_t r = 0; r < m; ++r) std::copy_n(to + r * y_row, n, y + r * n);
}

}  // namespace plumb::cpu
#endif
