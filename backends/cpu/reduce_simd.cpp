// Sums and maxima over axes. Neighbouring axes that are both reduced or both kept are merged into one. Each group of
// reduced axes is then one pass x [O, R, I] -> y [O, I]. The passes go from the innermost group to the outermost.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

struct Sum {
  static V start() { return zero(); }
  static V combine(V a, V b) { return hn::Add(a, b); }
  static float combine(float a, float b) { return a + b; }
};
struct Max {
  static V start() { return hn::Neg(hn::Inf(f32)); }
  static V combine(V a, V b) { return max_or_nan(a, b); }
  static float combine(float a, float b) { return b > a || b != b ? b : a; }
};

template <class Op>
HWY_INLINE float run(const float* x, std::int64_t n) {
  V a = Op::start(), b = a, c = a, d = a;
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    a = Op::combine(a, load(x + i, Whole{}));
    b = Op::combine(b, load(x + i + W, Whole{}));
    c = Op::combine(c, load(x + i + 2 * W, Whole{}));
    d = Op::combine(d, load(x + i + 3 * W, Whole{}));
  }
  for_lanes(n - i, [&](std::int64_t j, auto part)
                       HWY_ATTR { a = Op::combine(a, or_else(load(x + i + j, part), Op::start(), part)); });
  HWY_ALIGN float lanes[W];
  hn::Store(Op::combine(Op::combine(a, b), Op::combine(c, d)), f32, lanes);
  float result = lanes[0];
  for (std::int64_t k = 1; k < W; ++k) result = Op::combine(result, lanes[k]);
  return result;
}

template <class Op>
HWY_INLINE void columns(const float* x, std::int64_t rows, std::int64_t n, float* y) {
  std::int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    V a = Op::start(), b = a, c = a, d = a;
    for (const float *p = x + i, *end = p + rows * n; p != end; p += n) {
      a = Op::combine(a, load(p, Whole{}));
      b = Op::combine(b, load(p + W, Whole{}));
      c = Op::combine(c, load(p + 2 * W, Whole{}));
      d = Op::combine(d, load(p + 3 * W, Whole{}));
    }
    store(a, y + i, Whole{});
    store(b, y + i + W, Whole{});
    store(c, y + i + 2 * W, Whole{});
    store(d, y + i + 3 * W, Whole{});
  }
  for_lanes(n - i, [&](std::int64_t j, auto part) HWY_ATTR {
    V a = Op::start();
    for (std::int64_t r = 0; r < rows; ++r) a = Op::combine(a, load(x + r * n + i + j, part));
    store(a, y + i + j, part);
  });
}

float ReduceRun(Reduce op, const float* x, std::int64_t n) {
  return op == Reduce::sum ? run<Sum>(x, n) : run<Max>(x, n);
}

void ReduceColumns(Reduce op, const float* x, std::int64_t rows, std::int64_t n, float* y) {
  op == Reduce::sum ? columns<Sum>(x, rows, n, y) : columns<Max>(x, rows, n, y);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(ReduceRun);
HWY_EXPORT(ReduceColumns);

namespace {

void combine_partials(Reduce op, const float* partial, std::int64_t blocks, std::int64_t columns, float* y) {
  if (op == Reduce::max) return HWY_DYNAMIC_DISPATCH(ReduceColumns)(op, partial, blocks, columns, y);
  add_partials(partial, blocks, columns, y);
}

// Reduces x [O, R, I] to y [O, I]. For each index of O, the R axis is reduced in `parts` blocks, and the results of the
// blocks are combined in order.
void reduce_middle(Reduce op, const float* x, std::int64_t O, std::int64_t R, std::int64_t I, float* y) {
  const std::int64_t part_rows = I == 1   ? 4096
                                 : O >= 8 ? R
                                          : partial_rows(R),
                     parts = std::max<std::int64_t>(1, (R + part_rows - 1) / part_rows);
  const Scratch partial(parts > 1 ? O * parts * I : 0);
  float* const results = parts > 1 ? partial.data() : y;
  parallel_rows(O * parts, std::min(part_rows, R) * I, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % parts * part_rows, rows = std::min(R - first, part_rows);
      const float* const from = x + (i / parts * R + first) * I;
      if (I == 1)
        results[i] = HWY_DYNAMIC_DISPATCH(ReduceRun)(op, from, rows);
      else
        HWY_DYNAMIC_DISPATCH(ReduceColumns)(op, from, rows, I, results + i * I);
    }
  });
  if (parts > 1)
    for (std::int64_t o = 0; o < O; ++o) combine_partials(op, results + o * parts * I, parts, I, y + o * I);
}

}  // namespace

void add_partials(const float* partial, std::int64_t blocks, std::int64_t columns, float* y) {
  constexpr std::int64_t width = 64;
  for (std::int64_t first = 0; first < columns; first += width) {
    const std::int64_t n = std::min(width, columns - first);
    std::array<double, width> sum{};
    for (std::int64_t b = 0; b < blocks; ++b)
      for (std::int64_t c = 0; c < n; ++c)
        sum[static_cast<std::size_t>(c)] += static_cast<double>(partial[b * columns + first + c]);
    for (std::int64_t c = 0; c < n; ++c) y[first + c] = static_cast<float>(sum[static_cast<std::size_t>(c)]);
  }
}

void reduce(Reduce op, const Array& x, const Out& y) {
  if (x.numel() == 0) return reference_kernels().reduce(op, x, y);  // intermediate results could have any size
  struct Group {
    std::int64_t extent;
    bool reduced;
  };
  std::vector<Group> groups;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if (x.dim(axis) == 1) continue;
    const bool reduced = y.dim(axis) == 1;
    if (groups.empty() || groups.back().reduced != reduced)
      groups.push_back({x.dim(axis), reduced});
    else
      groups.back().extent *= x.dim(axis);
  }
  const float* from = x.data<float>();
  std::int64_t left = std::ranges::count_if(groups, &Group::reduced), inner = 1;
  if (left == 0) return cast(x, y);
  Array previous;
  for (std::size_t g = groups.size(); g-- > 0;) {
    if (!groups[g].reduced) {
      inner *= groups[g].extent;
      continue;
    }
    std::int64_t outer = 1;
    for (std::size_t i = 0; i < g; ++i) outer *= groups[i].extent;
    const Out result = --left == 0 ? y : Out(Array({outer * inner}, DType::f32, y.device()));
    reduce_middle(op, from, outer, groups[g].extent, inner, result.mutable_data<float>());
    previous = result;
    from = previous.data<float>();
  }
}

}  // namespace plumb::cpu
#endif
