// Small matrix products within the first-level cache, c = a b, with vectors along the columns. These products are the
// inner part of attention.
#if defined(PLUMB_CPU_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_TILE_INL
#undef PLUMB_CPU_TILE_INL
#else
#define PLUMB_CPU_TILE_INL
#endif

#include <hwy/cache_control.h>

#include <algorithm>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Rows of memory to prefetch. The rows of a head in a packed buffer are too far apart for the processor to predict.
// Prefetching all rows at once would only make the requests queue. Therefore each product prefetches some of the rows
// between its tiles.
struct Ahead {
  const char* rows = nullptr;
  std::int64_t stride = 0, count = 0, size = 0;  // stride and size are in bytes

  // The function must be inlined. Otherwise GCC drops the call, because GCC treats a function that only prefetches as a
  // function without effect.
  HWY_INLINE void prefetch(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t r = begin; r < std::min(end, count); ++r)
      for (std::int64_t j = 0; j < size; j += 64) hwy::Prefetch(rows + r * stride + j);
  }
};

// A product c = a b. Element (r, k) of a [rows, K] is at a[r * a_row + k * a_column], so a may be transposed. The rows
// of b [K, vectors * W] begin `b_row` elements apart, and the rows of c [rows, vectors * W] begin `c_row` elements
// apart. If `accumulate`, the product is added to c.
struct Product {
  const float* a;
  std::int64_t a_row, a_column;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, K, vectors;
  bool accumulate = false;
  const float* start = nullptr;  // [vectors * W]: initial values of the sums of each row; null means 0
  Ahead ahead[3] = {};
};

// The size of a tile of c in registers. For a tile of R rows and N vectors, the R * N sums, N vectors of b and one
// element of a fill the register file.
#if HWY_TARGET == HWY_AVX3
constexpr int max_vectors = 5;
constexpr int max_rows(int vectors) { return vectors == 5 ? 5 : vectors == 4 ? 6 : vectors == 3 ? 8 : 12; }
#else
constexpr int max_vectors = 3;
constexpr int max_rows(int vectors) { return vectors == 3 ? 4 : vectors == 2 ? 6 : 8; }
#endif

// PLUMB_UNROLL unrolls a loop over registers completely. Otherwise the compiler would place the array of sums in
// memory.
#if HWY_COMPILER_CLANG
#define PLUMB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PLUMB_UNROLL _Pragma("GCC unroll 16")
#endif

template <int R, int N>
HWY_NOINLINE void tile(const Product& p, std::int64_t row, std::int64_t column) {
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + column;
  float* const c = p.c + row * p.c_row + column;
  V sum[R][N];
  PLUMB_UNROLL
  for (int r = 0; r < R; ++r) PLUMB_UNROLL
  for (int n = 0; n < N; ++n) sum[r][n] = p.start ? hn::LoadU(f32, p.start + column + n * W) : zero();
  for (std::int64_t k = 0; k < p.K; ++k) {
    V right[N];
    PLUMB_UNROLL
    for (int n = 0; n < N; ++n) right[n] = hn::LoadU(f32, b + n * W);
    PLUMB_UNROLL
    for (int r = 0; r < R; ++r) {
      const V left = set(a[r * p.a_row]);
      PLUMB_UNROLL
      for (int n = 0; n < N; ++n) sum[r][n] = hn::MulAdd(left, right[n], sum[r][n]);
    }
    a += p.a_column;
    b += p.b_row;
  }
  PLUMB_UNROLL
  for (int r = 0; r < R; ++r) PLUMB_UNROLL
  for (int n = 0; n < N; ++n) {
    float* const to = c + r * p.c_row + n * W;
    hn::StoreU(p.accumulate ? hn::Add(hn::LoadU(f32, to), sum[r][n]) : sum[r][n], f32, to);
  }
}
#undef PLUMB_UNROLL

template <int N, int R = max_rows(N)>
HWY_INLINE void tile_of(std::int64_t rows, const Product& p, std::int64_t row, std::int64_t column) {
  if (rows == R)
    tile<R, N>(p, row, column);
  else if constexpr (R > 1)
    tile_of<N, R - 1>(rows, p, row, column);
}

// Splits [0, n) into ranges of at most `most` elements and nearly equal size. Calls f(begin, size) for each range.
template <class F>
HWY_INLINE void even_parts(std::int64_t n, std::int64_t most, F&& f) {
  const std::int64_t parts = (n + most - 1) / most;
  for (std::int64_t i = 0; i < parts; ++i) f(n * i / parts, n * (i + 1) / parts - n * i / parts);
}

template <int N = max_vectors>
HWY_INLINE void strip(const Product& p, std::int64_t vectors, std::int64_t column) {
  if (vectors == N)
    even_parts(p.rows, max_rows(N), [&](std::int64_t row, std::int64_t rows) HWY_ATTR {
      if (column == 0)
        for (const Ahead& x : p.ahead) x.prefetch(row, row + rows);
      tile_of<N>(rows, p, row, column);
    });
  else if constexpr (N > 1)
    strip<N - 1>(p, vectors, column);
}

HWY_INLINE void multiply(const Product& p) {
  even_parts(p.vectors, max_vectors,
             [&](std::int64_t first, std::int64_t vectors) HWY_ATTR { strip(p, vectors, first * W); });
}

// Computes t [columns, ld] = the transpose of x [rows, columns], four rows at a time. The rows of x begin `stride`
// elements apart. The columns of t from `rows` to the next multiple of four are set to 0. Later columns are not
// written.
HWY_INLINE void transpose(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* t,
                          std::int64_t ld) {
  const hn::FixedTag<float, 4> f4;
  const hn::Repartition<double, decltype(f4)> d2;
  HWY_ALIGN static constexpr float nothing[4] = {};
  for (std::int64_t r = 0; r < rows; r += 4) {
    const std::int64_t here = std::min<std::int64_t>(4, rows - r);
    const auto element = [&](std::int64_t i, std::int64_t c) { return i < here ? x + (r + i) * stride + c : nothing; };
    std::int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      const auto a0 = hn::LoadU(f4, element(0, c)), a1 = hn::LoadU(f4, element(1, c)),
                 a2 = hn::LoadU(f4, element(2, c)), a3 = hn::LoadU(f4, element(3, c));
      const auto b0 = hn::BitCast(d2, hn::InterleaveLower(f4, a0, a1)),
                 b1 = hn::BitCast(d2, hn::InterleaveLower(f4, a2, a3)),
                 b2 = hn::BitCast(d2, hn::InterleaveUpper(f4, a0, a1)),
                 b3 = hn::BitCast(d2, hn::InterleaveUpper(f4, a2, a3));
      float* const to = t + c * ld + r;
      hn::StoreU(hn::BitCast(f4, hn::InterleaveLower(d2, b0, b1)), f4, to);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveUpper(d2, b0, b1)), f4, to + ld);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveLower(d2, b2, b3)), f4, to + 2 * ld);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveUpper(d2, b2, b3)), f4, to + 3 * ld);
    }
    for (; c < columns; ++c)
      for (std::int64_t i = 0; i < 4; ++i) t[c * ld + r + i] = i < here ? x[(r + i) * stride + c] : 0;
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
