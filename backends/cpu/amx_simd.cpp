// Packs matrices for AMX, and sums products over rows (amx.h).
#include <algorithm>

#include "backends/cpu/amx.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/amx_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Packs a step of one panel of the matrix w^T, for w [N, K].
HWY_INLINE void pack_step_of_transpose(const AmxMatrix& b, const float* w, std::int64_t panel, std::int64_t step) {
  HWY_ALIGN bfloat16 rows[tile_side * tile_depth];
  const std::int64_t k = step * tile_depth;
  for (int t = 0; t < b.tiles(panel); ++t) {
    const std::int64_t n = (2 * panel + t) * tile_side;
    std::fill_n(rows, tile_side * tile_depth, bfloat16(0.0f));
    for (std::int64_t r = 0; r < std::min(tile_side, b.N() - n); ++r)
      for_lanes(std::min(tile_depth, b.K() - k), [&](std::int64_t i, auto part) HWY_ATTR {
        store(load(w + (n + r) * b.K() + k + i, part), rows + r * tile_depth + i, part);
      });
    transpose_tile(pairs_of(rows), tile_depth / 2, b.tile(panel, step, t), tile_side);
  }
}

// Packs the steps from `begin` to `end - 1` of all panels: step s of panel p has the number s * panels + p, so that the
// rows of w are read in order.
void AmxPackSteps(const AmxMatrix& b, const float* w, bool transposed, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t panel = i % b.panels(), step = i / b.panels();
    transposed ? pack_step_of_transpose(b, w, panel, step) : pack_step(b, w, b.N(), panel, step);
  }
}
void AmxPackHalfSteps(const AmxMatrix& b, const bfloat16* w, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) pack_step(b, w, b.N(), i % b.panels(), i / b.panels());
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
    for (std::int64_t panel = 0; panel < b.panels(); ++panel)
      for (std::int64_t t = 0; t < tiles; t += 2) {
        float* const c = y + (first + t * tile_side) * y_row + panel * 2 * tile_side;
        amx.multiply({.a = rows + t * tile_side * stride,
                      .a_row = stride,
                      .b = b.panel(panel, begin),
                      .steps = steps,
                      .start = begin == 0 ? nullptr : c,
                      .start_row = y_row,
                      .c = c,
                      .c_row = y_row,
                      .rows = t + 1 < tiles ? 2 : 1,
                      .columns = b.tiles(panel)});
      }
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AmxPackSteps);
HWY_EXPORT(AmxPackHalfSteps);
HWY_EXPORT(AmxTransposedProduct);

namespace {

// Calls pack(begin, end) for all steps of all panels, in blocks of about 4096 elements.
template <class F>
void pack_all(const AmxMatrix& b, F&& pack) {
  parallel_for(b.panels() * b.steps(), 4, pack);
}

}  // namespace

AmxMatrix::AmxMatrix(std::int64_t K, std::int64_t N, const float* w, bool transposed) : AmxMatrix(K, N) {
  pack_all(*this, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AmxPackSteps)(*this, w, transposed, begin, end);
  });
}

AmxMatrix::AmxMatrix(std::int64_t K, std::int64_t N, const bfloat16* w) : AmxMatrix(K, N) {
  pack_all(*this, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AmxPackHalfSteps)(*this, w, begin, end);
  });
}

void amx_product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, const bfloat16* b,
                           float* y) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill_n(y, m * n, 0.0f);
    return;
  }
  const AmxMatrix packed(k, n, b);
  // Whole tiles are computed. If y has none, they go through a copy.
  const bool whole = m % tile_side == 0 && n % tile_side == 0;
  const std::int64_t y_row = round_up(n, tile_side);
  const Scratch copy(whole ? 0 : round_up(m, tile_side) * y_row);
  float* const to = whole ? y : copy.data();
  const std::int64_t rows = round_up((m + fixed_parts - 1) / fixed_parts, 2 * tile_side);
  parallel_for(
      m, rows,
      [&](std::int64_t first, std::int64_t last) {
        HWY_DYNAMIC_DISPATCH(AmxTransposedProduct)(packed, a, m, first, last, to, y_row);
      },
      2 * m * n * k < small_product ? m + 1 : 2);
  if (whole) return;
  for (std::int64_t r = 0; r < m; ++r) std::copy_n(to + r * y_row, n, y + r * n);
}

}  // namespace plumb::cpu
#endif
