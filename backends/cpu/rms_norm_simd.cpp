// RMS norm over the last axis: y = gamma h, h = x rstd. The backward pass computes dx = rstd (u - h mean(u h)) with u =
// gamma dy, and dgamma = sum dy h.
#include <cmath>

#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rms_norm_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void RmsNormRows(const float* x, const float* gamma, float eps, std::int64_t rows, std::int64_t D, float* y,
                 float* rstd) {
  for (std::int64_t r = 0; r < rows; ++r, x += D, y += D) {
    V squares = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V v = load(x + i, part);
      squares = hn::MulAdd(v, v, squares);
    });
    const float s = 1 / std::sqrt(sum_lanes(squares) / static_cast<float>(D) + eps);
    const V vs = set(s);
    for_lanes(D, [&](std::int64_t i, auto part)
                     HWY_ATTR { store(hn::Mul(hn::Mul(load(x + i, part), vs), load(gamma + i, part)), y + i, part); });
    rstd[r] = s;
  }
}

// dx may be null. dgamma [D] gets the partial sum of this block.
void RmsNormBackwardRows(const float* dy, const float* x, const float* gamma, const float* rstd, std::int64_t rows,
                         std::int64_t D, float* dx, float* dgamma) {
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { store(zero(), dgamma + i, part); });
  for (std::int64_t r = 0; r < rows; ++r, x += D, dy += D) {
    const V s = set(rstd[r]);
    V sum_uh = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V gh = hn::Mul(load(dy + i, part), hn::Mul(load(x + i, part), s));
      sum_uh = hn::MulAdd(gh, load(gamma + i, part), sum_uh);
      store(hn::Add(gh, load(dgamma + i, part)), dgamma + i, part);
    });
    if (!dx) continue;
    const V mean_uh = set(sum_lanes(sum_uh) / static_cast<float>(D));
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(load(x + i, part), s), u = hn::Mul(load(dy + i, part), load(gamma + i, part));
      store(hn::Mul(s, hn::NegMulAdd(h, mean_uh, u)), dx + i, part);
    });
    dx += D;
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormBackwardRows);

void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Out& y, const Out& rstd) {
  const std::int64_t D = x.dim(-1);
  parallel_rows(rstd.numel(), D, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormRows)
    (x.data<float>() + begin * D, gamma.data<float>(), static_cast<float>(eps), end - begin, D,
     y.mutable_data<float>() + begin * D, rstd.mutable_data<float>() + begin);
  });
}

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Out& dx,
                       const Out& dgamma) {
  const std::int64_t D = x.dim(-1), R = rstd.numel(), grain = partial_rows(R), blocks = (R + grain - 1) / grain;
  const Scratch partial(blocks * D);
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(RmsNormBackwardRows)
    (dy.data<float>() + begin * D, x.data<float>() + begin * D, gamma.data<float>(), rstd.data<float>() + begin,
     end - begin, D, dx.defined() ? dx.mutable_data<float>() + begin * D : nullptr, partial.data() + begin / grain * D);
  });
  if (dgamma.defined()) add_partials(partial.data(), blocks, D, dgamma.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
