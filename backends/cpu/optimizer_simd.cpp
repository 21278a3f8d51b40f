// AdamW, one pass over all parameters, SGD and Adagrad, one over each, and the sum of squares that clipping needs.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/optimizer_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

HWY_INLINE V set(double x) { return hn::Set(f32, static_cast<float>(x)); }
// v, or 0 where |v| is below `limit`.
HWY_INLINE V above(V v, float limit) { return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Set(f32, limit)), v); }

// Moments that would be denormal become 0: a parameter whose gradient vanished would else cost a hundredfold in every later step. Next to
// eps neither is seen.
void AdamWRun(const AdamWStep& s, const float* gradient, float* parameter, float* moment1, float* moment2, std::int64_t n) {
  constexpr float least = 1.17549435e-38f, least_root = 1.08420217e-19f;
  const V scale = set(s.gradient_scale), b1 = set(s.beta1), b2 = set(s.beta2), a1 = set(1 - s.beta1), a2 = set(1 - s.beta2);
  const V rate = set(s.lr / s.correction1), c2 = set(1 / s.correction2), eps = set(s.eps), decay = set(s.lr * s.weight_decay);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V g = hn::Mul(scale, load(gradient + i, part)), h = above(g, least_root);
    const V m = above(hn::MulAdd(b1, load(moment1 + i, part), hn::Mul(a1, g)), least);
    const V v = above(hn::MulAdd(b2, load(moment2 + i, part), hn::Mul(a2, hn::Mul(h, h))), least);
    const V update = hn::Div(hn::Mul(rate, m), hn::Add(hn::Sqrt(hn::Mul(v, c2)), eps));
    store(m, moment1 + i, part);
    store(v, moment2 + i, part);
    const V p = load(parameter + i, part);
    store(hn::Sub(hn::NegMulAdd(decay, p, p), update), parameter + i, part);
  });
}

// velocity may be null.
void SgdRun(const SgdStep& s, const float* gradient, float* parameter, float* velocity, std::int64_t n) {
  const V scale = set(s.gradient_scale), decay = set(s.weight_decay), momentum = set(s.momentum), rate = set(s.lr);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V p = load(parameter + i, part);
    V g = hn::MulAdd(decay, p, hn::Mul(scale, load(gradient + i, part)));
    if (velocity) {
      const V v = hn::MulAdd(momentum, load(velocity + i, part), g);
      store(v, velocity + i, part);
      g = s.nesterov ? hn::MulAdd(momentum, v, g) : v;
    }
    store(hn::NegMulAdd(rate, g, p), parameter + i, part);
  });
}

void AdagradRun(const AdagradStep& s, const float* gradient, float* parameter, float* squares, std::int64_t n) {
  const V scale = set(s.gradient_scale), decay = set(s.weight_decay), rate = set(s.lr), eps = set(s.eps);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V p = load(parameter + i, part);
    const V g = hn::MulAdd(decay, p, hn::Mul(scale, load(gradient + i, part)));
    const V sum = hn::MulAdd(g, g, load(squares + i, part));
    store(sum, squares + i, part);
    store(hn::Sub(p, hn::Div(hn::Mul(rate, g), hn::Add(hn::Sqrt(sum), eps))), parameter + i, part);
  });
}

double SumOfSquares(const float* x, std::int64_t n) {
  const hn::ScalableTag<double> f64;
  const hn::Rebind<float, decltype(f64)> half;
  constexpr std::int64_t L = HWY_LANES(double);
  auto a = hn::Zero(f64), b = a;
  std::int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const auto u = hn::PromoteTo(f64, hn::LoadU(half, x + i)), v = hn::PromoteTo(f64, hn::LoadU(half, x + i + L));
    a = hn::MulAdd(u, u, a);
    b = hn::MulAdd(v, v, b);
  }
  double sum = hn::GetLane(hn::SumOfLanes(f64, hn::Add(a, b)));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AdamWRun);
HWY_EXPORT(SgdRun);
HWY_EXPORT(AdagradRun);
HWY_EXPORT(SumOfSquares);

namespace {

// A run of elements of the i-th of several arrays.
struct Run {
  std::size_t i;
  std::int64_t begin, end;
};

// Arrays of these sizes in runs of at most `grain`, so that one parallel loop covers them all, small or large.
template <class Size>
std::vector<Run> runs_of(std::size_t arrays, std::int64_t grain, Size&& size) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < arrays; ++i)
    for (std::int64_t begin = 0, n = size(i); begin < n; begin += grain) runs.push_back({i, begin, std::min(n, begin + grain)});
  return runs;
}

}  // namespace

void adamw(std::span<const AdamWUpdate> updates) {
  const std::vector<Run> runs = runs_of(updates.size(), 4096, [&](std::size_t i) { return updates[i].parameter.numel(); });
  parallel_for(
      static_cast<std::int64_t>(runs.size()), 1,
      [&](std::int64_t first, std::int64_t) {
        const Run& run = runs[static_cast<std::size_t>(first)];
        const AdamWUpdate& u = updates[run.i];
        HWY_DYNAMIC_DISPATCH(AdamWRun)
        (u.step, u.gradient.data<float>() + run.begin, u.parameter.mutable_data<float>() + run.begin, u.moment1.mutable_data<float>() + run.begin,
         u.moment2.mutable_data<float>() + run.begin, run.end - run.begin);
      },
      4);
}

void sgd(const SgdStep& s, const Array& gradient, const Out& parameter, const Out& velocity) {
  parallel_elements(parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(SgdRun)
    (s, gradient.data<float>() + begin, parameter.mutable_data<float>() + begin,
     velocity.defined() ? velocity.mutable_data<float>() + begin : nullptr, end - begin);
  });
}

void adagrad(const AdagradStep& s, const Array& gradient, const Out& parameter, const Out& squares) {
  parallel_elements(parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(AdagradRun)
    (s, gradient.data<float>() + begin, parameter.mutable_data<float>() + begin, squares.mutable_data<float>() + begin, end - begin);
  });
}

void sum_of_squares(std::span<const Array> arrays, const Out& sum) {
  const std::vector<Run> runs = runs_of(arrays.size(), 16384, [&](std::size_t i) { return arrays[i].numel(); });
  std::vector<double> partial(runs.size());
  parallel_for(
      static_cast<std::int64_t>(runs.size()), 1,
      [&](std::int64_t first, std::int64_t) {
        const Run& run = runs[static_cast<std::size_t>(first)];
        partial[static_cast<std::size_t>(first)] = HWY_DYNAMIC_DISPATCH(SumOfSquares)(arrays[run.i].data<float>() + run.begin, run.end - run.begin);
      },
      4);
  double total = 0;
  for (double p : partial) total += p;
  *sum.mutable_data<double>() = total;
}

}  // namespace plumb::cpu
#endif
