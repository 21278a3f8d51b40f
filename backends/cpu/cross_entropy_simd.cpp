// Cross-entropy over the last axis. The target t of a row is a smoothed label, or a row of given probabilities. The
// loss of a row is lse sum(t) - sum(t x), with lse = log sum exp(x). The gradient is dx = dloss / R (softmax(x) sum(t)
// - t).
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

HWY_INLINE float sum(const float* x, std::int64_t n) {
  V s = zero();
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { s = hn::Add(s, load(x + i, part)); });
  return sum_lanes(s);
}

// Exactly one of `labels` and `target` is null. `losses` gets one loss per row, and `lse` gets one lse per row.
void CrossEntropyRows(const float* x, const std::int64_t* labels, const float* target, float smoothing,
                      std::int64_t rows, std::int64_t C, float* losses, float* lse) {
  for (std::int64_t r = 0; r < rows; ++r, x += C) {
    const float l = lse[r] = log_sum_exp(x, C);
    if (labels) {
      losses[r] = (1 - smoothing) * (l - x[labels[r]]);
      if (smoothing != 0) losses[r] += smoothing * (l - sum(x, C) / static_cast<float>(C));
    } else {
      V s = zero();  // sum of t (lse - x); this form avoids a difference of large sums
      for_lanes(C, [&](std::int64_t i, auto part) HWY_ATTR {
        s = hn::MulAdd(load(target + r * C + i, part), hn::Sub(set(l), load(x + i, part)), s);
      });
      losses[r] = sum_lanes(s);
    }
  }
}

void CrossEntropyBackwardRows(float scale, const float* x, const std::int64_t* labels, const float* target,
                              float smoothing, const float* lse, std::int64_t rows, std::int64_t C, float* dx) {
  const V vscale = set(scale), smooth = set(smoothing / static_cast<float>(C));
  for (std::int64_t r = 0; r < rows; ++r, x += C, dx += C) {
    const float* t = target ? target + r * C : nullptr;
    const V total = set(t ? sum(t, C) : 1.0f), l = set(lse[r]);
    for_lanes(C, [&](std::int64_t i, auto part) HWY_ATTR {
      const V p = exp2_or_zero(hn::Mul(hn::Sub(load(x + i, part), l), set(log2_e)));
      store(hn::Mul(vscale, hn::MulSub(p, total, t ? load(t + i, part) : smooth)), dx + i, part);
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
                           const Out& lse) {
  const std::int64_t R = lse.numel(), C = x.dim(-1);
  const std::int64_t* label = target.defined() ? nullptr : labels.data<std::int64_t>();
  const float* soft = target.defined() ? target.data<float>() : nullptr;
  const Scratch losses(R);
  parallel_rows(R, C, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyRows)
    (x.data<float>() + begin * C, label ? label + begin : nullptr, soft ? soft + begin * C : nullptr,
     static_cast<float>(smoothing), end - begin, C, losses.data() + begin, lse.mutable_data<float>() + begin);
  });
  double sum = 0;
  for (std::int64_t r = 0; r < R; ++r) sum += static_cast<double>(losses.data()[r]);
  *loss.mutable_data<float>() = static_cast<float>(sum / static_cast<double>(R));
}

void cross_entropy_backward(const Array& dloss, const Array& x, const Array& labels, const Array& target,
                            double smoothing, const Array& lse, const Out& dx) {
  const std::int64_t R = lse.numel(), C = x.dim(-1);
  const std::int64_t* label = target.defined() ? nullptr : labels.data<std::int64_t>();
  const float* soft = target.defined() ? target.data<float>() : nullptr;
  const float scale = *dloss.data<float>() / static_cast<float>(R);
  parallel_rows(R, C, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyBackwardRows)
    (scale, x.data<float>() + begin * C, label ? label + begin : nullptr, soft ? soft + begin * C : nullptr,
     static_cast<float>(smoothing), lse.data<float>() + begin, end - begin, C, dx.mutable_data<float>() + begin * C);
  });
}

}  // namespace plumb::cpu
#endif
