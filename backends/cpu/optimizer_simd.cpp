// The optimizers, and the sum of squares for gradient clipping. LAMB makes one pass per parameter; the other optimizers
// make one pass over all parameters.
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
// Returns v, or 0 for lanes where |v| is below `limit`.
HWY_INLINE V above(V v, float limit) { return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Set(f32, limit)), v); }

// Updates Adam's moments by a gradient and returns the update m^ / (sqrt(v^) + eps) times `rate`. Moments that would be
// denormal become 0. Otherwise a parameter with a vanished gradient would cost a hundred times as much in every later
// step. Denormal moments make no difference, because eps is much larger.
class Adam {
 public:
  Adam(const AdamWStep& s, double gradient_scale, double rate)
      : scale_(set(gradient_scale)),
        b1_(set(s.beta1)),
        b2_(set(s.beta2)),
        a1_(set(1 - s.beta1)),
        a2_(set(1 - s.beta2)),
        rate_(set(rate / s.correction1)),
        c2_(set(1 / s.correction2)),
        eps_(set(s.eps)) {}

  template <class Part>
  HWY_INLINE V update(const float* gradient, float* moment1, float* moment2, Part part) const {
    constexpr float least = 1.17549435e-38f, least_root = 1.08420217e-19f;
    const V g = hn::Mul(scale_, load(gradient, part)), h = above(g, least_root);
    const V m = above(hn::MulAdd(b1_, load(moment1, part), hn::Mul(a1_, g)), least);
    const V v = above(hn::MulAdd(b2_, load(moment2, part), hn::Mul(a2_, hn::Mul(h, h))), least);
    store(m, moment1, part);
    store(v, moment2, part);
    return hn::Div(hn::Mul(rate_, m), hn::Add(hn::Sqrt(hn::Mul(v, c2_)), eps_));
  }

 private:
  V scale_, b1_, b2_, a1_, a2_, rate_, c2_, eps_;
};

void AdamWRun(const AdamWStep& s, double gradient_scale, const float* gradient, float* parameter, float* moment1,
              float* moment2, std::int64_t n) {
  const Adam adam(s, gradient_scale, s.lr);
  const V decay = set(s.lr * s.weight_decay);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V update = adam.update(gradient + i, moment1 + i, moment2 + i, part);
    const V p = load(parameter + i, part);
    store(hn::Sub(hn::NegMulAdd(decay, p, p), update), parameter + i, part);
  });
}

// Computes the direction of LAMB before the trust ratio is applied.
void LambRun(const AdamWStep& s, double gradient_scale, const float* gradient, const float* parameter, float* moment1,
             float* moment2, float* direction, std::int64_t n) {
  const Adam adam(s, gradient_scale, 1);
  const V decay = set(s.weight_decay);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V update = adam.update(gradient + i, moment1 + i, moment2 + i, part);
    store(hn::MulAdd(decay, load(parameter + i, part), update), direction + i, part);
  });
}

// velocity may be null.
void SgdRun(const SgdStep& s, double gradient_scale, const float* gradient, float* parameter, float* velocity,
            std::int64_t n) {
  const V scale = set(gradient_scale), decay = set(s.weight_decay), momentum = set(s.momentum), rate = set(s.lr);
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

void AdagradRun(const AdagradStep& s, double gradient_scale, const float* gradient, float* parameter, float* squares,
                std::int64_t n) {
  const V scale = set(gradient_scale), decay = set(s.weight_decay), rate = set(s.lr), eps = set(s.eps);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V p = load(parameter + i, part);
    const V g = hn::MulAdd(decay, p, hn::Mul(scale, load(gradient + i, part)));
    const V sum = hn::MulAdd(g, g, load(squares + i, part));
    store(sum, squares + i, part);
    store(hn::Sub(p, hn::Div(hn::Mul(rate, g), hn::Add(hn::Sqrt(sum), eps))), parameter + i, part);
  });
}

void EmaRun(double rate, const float* value, float* average, std::int64_t n) {
  const V r = set(rate);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const V y = load(average + i, part);
    store(hn::NegMulAdd(r, hn::Sub(y, load(value + i, part)), y), average + i, part);
  });
}

// Computes y = y - rate x.
void MoveRun(double rate, const float* x, float* y, std::int64_t n) {
  const V r = set(rate);
  for_lanes(n, [&](std::int64_t i, auto part)
                   HWY_ATTR { store(hn::NegMulAdd(r, load(x + i, part), load(y + i, part)), y + i, part); });
}

// The sum of the squares of x [n], in two sums per lane.
class Squares {
 public:
  Squares(const float* x, std::int64_t n) : x_(x), n_(n) {}
  static constexpr std::int64_t step = 2 * HWY_LANES(double);
  HWY_INLINE void add(std::int64_t i) {
    const auto u = hn::PromoteTo(f64, hn::LoadU(half, x_ + i)),
               v = hn::PromoteTo(f64, hn::LoadU(half, x_ + i + step / 2));
    a_ = hn::MulAdd(u, u, a_);
    b_ = hn::MulAdd(v, v, b_);
  }
  // Adds the elements from i on, and returns the sum of all squares.
  HWY_INLINE double finish(std::int64_t i) {
    for (; i + step <= n_; i += step) add(i);
    double sum = hn::GetLane(hn::SumOfLanes(f64, hn::Add(a_, b_)));
    for (; i < n_; ++i) sum += static_cast<double>(x_[i]) * static_cast<double>(x_[i]);
    return sum;
  }

 private:
  static constexpr hn::ScalableTag<double> f64{};
  static constexpr hn::Rebind<float, hn::ScalableTag<double>> half{};
  const float* x_;
  std::int64_t n_;
  hn::Vec<hn::ScalableTag<double>> a_ = hn::Zero(f64), b_ = hn::Zero(f64);
};

// Writes the sums of squares of x [n] and of y [m]. Together they take less time than one after the other, because each
// multiply-add waits for the one before it.
void SumsOfSquares(const float* x, std::int64_t n, const float* y, std::int64_t m, double* of_x, double* of_y) {
  Squares p(x, n), q(y, m);
  std::int64_t i = 0;
  for (; i + Squares::step <= std::min(n, m); i += Squares::step) {
    p.add(i);
    q.add(i);
  }
  *of_x = p.finish(i);
  *of_y = q.finish(i);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(AdamWRun);
HWY_EXPORT(SgdRun);
HWY_EXPORT(AdagradRun);
HWY_EXPORT(EmaRun);
HWY_EXPORT(LambRun);
HWY_EXPORT(MoveRun);
HWY_EXPORT(SumsOfSquares);

namespace {

// The elements from `begin` to `end - 1` of array number i.
struct Run {
  std::size_t i;
  std::int64_t begin, end;
};

// Splits arrays with the sizes size(i) into runs of at most `grain` elements. One parallel loop over the runs then
// covers all arrays, small or large.
template <class Size>
std::vector<Run> runs_of(std::size_t arrays, std::int64_t grain, Size&& size) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < arrays; ++i)
    for (std::int64_t begin = 0, n = size(i); begin < n; begin += grain)
      runs.push_back({i, begin, std::min(n, begin + grain)});
  return runs;
}

// Return the array whose numel() is the number of elements of the update.
const Out& written(const EmaUpdate& u) { return u.average; }
template <class Update>
const Out& written(const Update& u) {
  return u.parameter;
}

// Calls f(update, begin, n) in parallel for runs of elements that cover all updates.
template <class Update, class F>
void each_run(std::span<const Update> updates, F&& f) {
  const std::vector<Run> runs =
      runs_of(updates.size(), 4096, [&](std::size_t i) { return written(updates[i]).numel(); });
  parallel_for(
      static_cast<std::int64_t>(runs.size()), 1,
      [&](std::int64_t first, std::int64_t) {
        const Run& run = runs[static_cast<std::size_t>(first)];
        f(updates[run.i], run.begin, run.end - run.begin);
      },
      4);
}

double root_of_squares(const Array& x) {
  const Array sum({}, DType::f64, Device::cpu);
  sum_of_squares({&x, 1}, Out(sum));
  return std::sqrt(*sum.data<double>());
}

}  // namespace

void adamw(std::span<const AdamWUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  each_run(updates, [&](const AdamWUpdate& u, std::int64_t begin, std::int64_t n) {
    HWY_DYNAMIC_DISPATCH(AdamWRun)
    (u.step, now.scale, u.gradient.data<float>() + begin, u.parameter.mutable_data<float>() + begin,
     u.moment1.mutable_data<float>() + begin, u.moment2.mutable_data<float>() + begin, n);
  });
}

void lamb(std::span<const AdamWUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  for (const AdamWUpdate& u : updates) {
    const std::span<const AdamWUpdate> one(&u, 1);
    const Out direction = empty_like(u.parameter);
    each_run(one, [&](const AdamWUpdate&, std::int64_t begin, std::int64_t n) {
      HWY_DYNAMIC_DISPATCH(LambRun)
      (u.step, now.scale, u.gradient.data<float>() + begin, u.parameter.data<float>() + begin,
       u.moment1.mutable_data<float>() + begin, u.moment2.mutable_data<float>() + begin,
       direction.mutable_data<float>() + begin, n);
    });
    double trust = 1;
    if (u.step.weight_decay > 0)
      if (const double p = root_of_squares(u.parameter), d = root_of_squares(direction); p > 0 && d > 0) trust = p / d;
    each_run(one, [&](const AdamWUpdate&, std::int64_t begin, std::int64_t n) {
      HWY_DYNAMIC_DISPATCH(MoveRun)
      (u.step.lr * trust, direction.data<float>() + begin, u.parameter.mutable_data<float>() + begin, n);
    });
  }
}

void sgd(std::span<const SgdUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  each_run(updates, [&](const SgdUpdate& u, std::int64_t begin, std::int64_t n) {
    HWY_DYNAMIC_DISPATCH(SgdRun)
    (u.step, now.scale, u.gradient.data<float>() + begin, u.parameter.mutable_data<float>() + begin,
     u.velocity.defined() ? u.velocity.mutable_data<float>() + begin : nullptr, n);
  });
}

void adagrad(std::span<const AdagradUpdate> updates, const Array& state) {
  const StepState now = StepState::of(state);
  if (now.goes_on == 0) return;
  each_run(updates, [&](const AdagradUpdate& u, std::int64_t begin, std::int64_t n) {
    HWY_DYNAMIC_DISPATCH(AdagradRun)
    (u.step, now.scale, u.gradient.data<float>() + begin, u.parameter.mutable_data<float>() + begin,
     u.squares.mutable_data<float>() + begin, n);
  });
}

void ema(double rate, std::span<const EmaUpdate> updates) {
  each_run(updates, [&](const EmaUpdate& u, std::int64_t begin, std::int64_t n) {
    HWY_DYNAMIC_DISPATCH(EmaRun)(rate, u.value.data<float>() + begin, u.average.mutable_data<float>() + begin, n);
  });
}

void sum_of_squares(std::span<const Array> arrays, const Out& sum) {
  const std::vector<Run> runs = runs_of(arrays.size(), 16384, [&](std::size_t i) { return arrays[i].numel(); });
  std::vector<double> partial(runs.size() + 1);
  parallel_for(
      static_cast<std::int64_t>(runs.size()), 2,
      [&](std::int64_t first, std::int64_t last) {
        const auto i = static_cast<std::size_t>(first);
        const auto elements = [&](const Run& run) { return arrays[run.i].data<float>() + run.begin; };
        // If the number of runs is odd, the last block has an empty second run, whose sum is the extra element.
        const Run &x = runs[i], &y = last - first == 2 ? runs[i + 1] : Run{x.i, x.begin, x.begin};
        HWY_DYNAMIC_DISPATCH(SumsOfSquares)
        (elements(x), x.end - x.begin, elements(y), y.end - y.begin, &partial[i], &partial[i + 1]);
      },
      4);
  double total = 0;
  for (double p : partial) total += p;
  *sum.mutable_data<double>() = total;
}

}  // namespace plumb::cpu
#endif
