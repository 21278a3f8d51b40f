// Cross-entropy over the last axis. The target t of a row is a smoothed label, or a row of given probabilities. The
// loss of a row is sum(t (log sum exp(x - m) - (x - m))), with m the largest x. The gradient is dx = dloss / R
// (softmax(x) sum(t) - t).
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/cross_entropy_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Returns the sum of x - from.
HWY_INLINE float sum(const float* x, std::int64_t n, float from = 0) {
  V s = zero();
  for_lanes(n, [&](std::int64_t i, auto part)
                   HWY_ATTR { s = hn::Add(s, or_else(hn::Sub(load(x + i, part), set(from)), zero(), part)); });
  return sum_lanes(s);
}

// Exactly one of `labels` and `target` is null. `losses` gets one loss per row. `sums` gets two values per row: the
// largest x, and the sum of the exponentials relative to it.
void CrossEntropyRows(const float* x, const std::int64_t* labels, const float* target, float smoothing,
                      std::int64_t rows, std::int64_t C, float* losses, float* sums) {
  for (std::int64_t r = 0; r < rows; ++r, x += C) {
    const Exponentials e = exponentials(x, C);
    sums[2 * r] = e.top, sums[2 * r + 1] = e.sum;
    const float l = std::log(e.sum);
    if (labels) {
      losses[r] = (1 - smoothing) * (l - (x[labels[r]] - e.top));
      if (smoothing != 0) losses[r] += smoothing * (l - sum(x, C, e.top) / static_cast<float>(C));
    } else {
      V s = zero();  // sum of t (l - (x - top)); this form avoids a difference of large sums
      for_lanes(C, [&](std::int64_t i, auto part) HWY_ATTR {
        s = hn::MulAdd(load(target + r * C + i, part), hn::Sub(set(l), hn::Sub(load(x + i, part), set(e.top))), s);
      });
      losses[r] = sum_lanes(s);
    }
  }
}

void CrossEntropyBackwardRows(float scale, const float* x, const std::int64_t* labels, const float* target,
                              float smoothing, const float* sums, std::int64_t rows, std::int64_t C, float* dx) {
  const V vscale = set(scale), smooth = set(smoothing / static_cast<float>(C));
  for (std::int64_t r = 0; r < rows; ++r, x += C, dx += C) {
    const float* t = target ? target + r * C : nullptr;
    const V share = set((t ? sum(t, C) : 1.0f) / sums[2 * r + 1]), top = set(sums[2 * r]);
    for_lanes(C, [&](std::int64_t i, auto part) HWY_ATTR {
      const V e = exp2_or_zero(hn::Mul(hn::Sub(load(x + i, part), top), set(log2_e)));
      store(hn::Mul(vscale, hn::MulSub(e, share, t ? load(t + i, part) : smooth)), dx + i, part);
    });
    if (labels) dx[labels[r]] -= scale * (1 - smoothing);
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(CrossEntropyBackwardRows);

void cross_entropy_forward(const Array& x, const Array& labels, const Array& target, double smoothing, const Out& loss,
                           const Out& sums) {
  const std::int64_t R = sums.numel() / 2, C = x.dim(-1);
  const std::int64_t* label = target.defined() ? nullptr : labels.data<std::int64_t>();
  const float* soft = target.defined() ? target.data<float>() : nullptr;
  const Scratch losses(R);
  parallel_rows(R, C, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyRows)
    (x.data<float>() + begin * C, label ? label + begin : nullptr, soft ? soft + begin * C : nullptr,
     static_cast<float>(smoothing), end - begin, C, losses.data() + begin, sums.mutable_data<float>() + 2 * begin);
  });
  double sum = 0;
  for (std::int64_t r = 0; r < R; ++r) sum += static_cast<double>(losses.data()[r]);
  *loss.mutable_data<float>() = static_cast<float>(sum / static_cast<double>(R));
}

void cross_entropy_backward(const Array& dloss, const Array& x, const Array& labels, const Array& target,
                            double smoothing, const Array& sums, const Out& dx) {
  const std::int64_t R = sums.numel() / 2, C = x.dim(-1);
  const std::int64_t* label = target.defined() ? nullptr : labels.data<std::int64_t>();
  const float* soft = target.defined() ? target.data<float>() : nullptr;
  const float scale = *dloss.data<float>() / static_cast<float>(R);
  parallel_rows(R, C, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyBackwardRows)
    (scale, x.data<float>() + begin * C, label ? label + begin : nullptr, soft ? soft + begin * C : nullptr,
     static_cast<float>(smoothing), sums.data<float>() + 2 * begin, end - begin, C,
     dx.mutable_data<float>() + begin * C);
  });
}

}  // namespace plumb::cpu
#endif
