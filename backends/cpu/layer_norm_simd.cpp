// Layer norm as a separate op. (Layer norm before a product is part of linear_forward_simd.cpp.)
#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/layer_norm_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/layer_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void LayerNormRows(const float* x, const float* gamma, const float* beta, float eps, std::int64_t rows, std::int64_t D,
                   float* y, float* mean, float* rstd) {
  layer_norm_rows(x, gamma, beta, eps, rows, D, y, mean, rstd);
}

void LayerNormBackwardRows(const float* dy, const float* x, const float* gamma, const float* mean, const float* rstd,
                           std::int64_t rows, std::int64_t D, float* dx, float* dgamma, float* dbeta) {
  layer_norm_backward_rows(dy, x, gamma, mean, rstd, rows, D, dx, false, dgamma, dbeta, nullptr,
                           static_cast<float*>(nullptr));
}

// Computes the derivatives of layer_norm_backward's dx (formulas: core/kernels.def). dgamma [D] gets the partial sum of
// this block.
void LayerNormSecondRows(const float* g, const float* dy, const float* x, const float* gamma, const float* mean,
                         const float* rstd, std::int64_t rows, std::int64_t D, float* ddy, float* dx, float* dgamma) {
  const float scale = 1 / static_cast<float>(D);
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { store(zero(), dgamma + i, part); });
  for (std::int64_t r = 0; r < rows; ++r, g += D, dy += D, x += D, ddy += D, dx += D) {
    const V m = set(mean[r]), s = set(rstd[r]);
    V sum_g = zero(), sum_u = zero(), sum_gh = zero(), sum_uh = zero(), sum_gu = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(x + i, part), m), s), u = hn::Mul(load(gamma + i, part), load(dy + i, part)),
              v = load(g + i, part);
      sum_g = hn::Add(sum_g, v);
      sum_u = hn::Add(sum_u, u);
      sum_gh = hn::MulAdd(v, h, sum_gh);
      sum_uh = hn::MulAdd(u, h, sum_uh);
      sum_gu = hn::MulAdd(v, u, sum_gu);
    });
    const float g1 = sum_lanes(sum_g) * scale, u1 = sum_lanes(sum_u) * scale, gh = sum_lanes(sum_gh) * scale,
                uh = sum_lanes(sum_uh) * scale;
    // With t = g uh + u gh, dx needs mean(t) and mean(t h). From the means above, mean(t) = g1 uh + u1 gh and mean(t h)
    // = 2 gh uh.
    const V mean_g = set(g1), mean_gh = set(gh), mean_uh = set(uh), mean_t = set(g1 * uh + u1 * gh),
            along_h = set(sum_lanes(sum_gu) * scale - g1 * u1 - 3 * gh * uh);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(x + i, part), m), s), d = load(dy + i, part), gain = load(gamma + i, part),
              u = hn::Mul(gain, d), v = load(g + i, part);
      const V p = hn::Mul(s, hn::NegMulAdd(h, mean_gh, hn::Sub(v, mean_g)));
      const V t = hn::Sub(hn::MulAdd(v, mean_uh, hn::Mul(u, mean_gh)), mean_t);
      store(hn::Mul(gain, p), ddy + i, part);
      store(hn::Neg(hn::Mul(hn::Mul(s, s), hn::MulAdd(h, along_h, t))), dx + i, part);
      store(hn::MulAdd(d, p, load(dgamma + i, part)), dgamma + i, part);
    });
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);
HWY_EXPORT(LayerNormSecondRows);

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y,
                        const Out& mean, const Out& rstd) {
  const std::int64_t D = x.dim(-1);
  parallel_rows(rstd.numel(), D, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRows)
    (x.data<float>() + begin * D, gamma.data<float>(), beta.data<float>(), static_cast<float>(eps), end - begin, D,
     y.mutable_data<float>() + begin * D, mean.mutable_data<float>() + begin, rstd.mutable_data<float>() + begin);
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd,
                         const Out& dx, const Out& dgamma, const Out& dbeta) {
  const std::int64_t D = x.dim(-1), R = rstd.numel(), grain = partial_rows(R), blocks = (R + grain - 1) / grain;
  const Scratch partial(2 * blocks * D);
  float *const partial_gamma = partial.data(), *const partial_beta = partial_gamma + blocks * D;
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)
    (dy.data<float>() + begin * D, x.data<float>() + begin * D, gamma.data<float>(), mean.data<float>() + begin,
     rstd.data<float>() + begin, end - begin, D, dx.defined() ? dx.mutable_data<float>() + begin * D : nullptr,
     partial_gamma + begin / grain * D, partial_beta + begin / grain * D);
  });
  if (dgamma.defined()) add_partials(partial_gamma, blocks, D, dgamma.mutable_data<float>());
  if (dbeta.defined()) add_partials(partial_beta, blocks, D, dbeta.mutable_data<float>());
}

void layer_norm_second(const Array& g, const Array& dy, const Array& x, const Array& gamma, const Array& mean,
                       const Array& rstd, const Out& ddy, const Out& dx, const Out& dgamma) {
  const std::int64_t D = x.dim(-1), R = rstd.numel(), grain = partial_rows(R), blocks = (R + grain - 1) / grain;
  const Scratch partial(blocks * D);
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormSecondRows)
    (g.data<float>() + begin * D, dy.data<float>() + begin * D, x.data<float>() + begin * D, gamma.data<float>(),
     mean.data<float>() + begin, rstd.data<float>() + begin, end - begin, D, ddy.mutable_data<float>() + begin * D,
     dx.mutable_data<float>() + begin * D, partial.data() + begin / grain * D);
  });
  add_partials(partial.data(), blocks, D, dgamma.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
