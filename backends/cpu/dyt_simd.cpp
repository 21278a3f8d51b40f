// DyT over the last axis: y = gamma t + beta, t = tanh(alpha x). The backward pass recomputes t. The gradients are dx =
// alpha u with u = gamma dy (1 - t^2), dalpha = sum u x, dgamma = sum dy t and dbeta = sum dy. Each block of rows keeps
// partial sums.
#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dyt_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void DytRows(const float* x, float alpha, const float* gamma, const float* beta, std::int64_t rows, std::int64_t D,
             float* y) {
  const V a = set(alpha);
  for (std::int64_t r = 0; r < rows; ++r, x += D, y += D)
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      store(hn::MulAdd(load(gamma + i, part), tanh(hn::Mul(a, load(x + i, part))), load(beta + i, part)), y + i, part);
    });
}

// dx may be null. dgamma and dbeta [D] get the partial sums of this block of rows. Returns the partial sum of dalpha.
float DytBackwardRows(const float* dy, const float* x, float alpha, const float* gamma, std::int64_t rows,
                      std::int64_t D, float* dx, float* dgamma, float* dbeta) {
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    store(zero(), dgamma + i, part);
    store(zero(), dbeta + i, part);
  });
  const V a = set(alpha);
  double dalpha = 0;
  for (std::int64_t r = 0; r < rows; ++r, x += D, dy += D) {
    V sum_ux = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = load(dy + i, part), v = load(x + i, part), t = tanh(hn::Mul(a, v));
      const V u = hn::Mul(hn::Mul(load(gamma + i, part), g), hn::NegMulAdd(t, t, set(1.0f)));
      sum_ux = hn::MulAdd(u, v, sum_ux);
      store(hn::MulAdd(g, t, load(dgamma + i, part)), dgamma + i, part);
      store(hn::Add(g, load(dbeta + i, part)), dbeta + i, part);
      if (dx) store(hn::Mul(a, u), dx + r * D + i, part);
    });
    dalpha += sum_lanes(sum_ux);
  }
  return static_cast<float>(dalpha);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(DytRows);
HWY_EXPORT(DytBackwardRows);

void dyt_forward(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Out& y) {
  const std::int64_t D = gamma.numel(), R = D ? x.numel() / D : 0;
  parallel_rows(R, D, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(DytRows)
    (x.data<float>() + begin * D, *alpha.data<float>(), gamma.data<float>(), beta.data<float>(), end - begin, D,
     y.mutable_data<float>() + begin * D);
  });
}

void dyt_backward(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Out& dx,
                  const Out& dalpha, const Out& dgamma, const Out& dbeta) {
  const std::int64_t D = gamma.numel(), R = D ? x.numel() / D : 0, grain = partial_rows(R),
                     blocks = (R + grain - 1) / grain;
  const Scratch partial(blocks * (2 * D + 1));
  float *const partial_gamma = partial.data(), *const partial_beta = partial_gamma + blocks * D,
               *const partial_alpha = partial_beta + blocks * D;
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t block = begin / grain;
    partial_alpha[block] = HWY_DYNAMIC_DISPATCH(DytBackwardRows)(
        dy.data<float>() + begin * D, x.data<float>() + begin * D, *alpha.data<float>(), gamma.data<float>(),
        end - begin, D, dx.defined() ? dx.mutable_data<float>() + begin * D : nullptr, partial_gamma + block * D,
        partial_beta + block * D);
  });
  if (dalpha.defined()) add_partials(partial_alpha, blocks, 1, dalpha.mutable_data<float>());
  if (dgamma.defined()) add_partials(partial_gamma, blocks, D, dgamma.mutable_data<float>());
  if (dbeta.defined()) add_partials(partial_beta, blocks, D, dbeta.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
