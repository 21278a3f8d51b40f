// Layer norm by itself; before a product it is part of linear_simd.cpp.
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

void LayerNormRows(const float* x, const float* gamma, const float* beta, float eps, std::int64_t rows, std::int64_t D, float* y, float* mean,
                   float* rstd) {
  layer_norm_rows(x, gamma, beta, eps, rows, D, y, mean, rstd);
}

void LayerNormBackwardRows(const float* dy, const float* x, const float* gamma, const float* mean, const float* rstd, std::int64_t rows,
                           std::int64_t D, float* dx, float* dgamma, float* dbeta) {
  layer_norm_backward_rows(dy, x, gamma, mean, rstd, rows, D, dx, false, dgamma, dbeta, nullptr, static_cast<float*>(nullptr));
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y, const Out& mean, const Out& rstd) {
  const std::int64_t D = x.dim(-1);
  parallel_rows(rstd.numel(), D, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRows)
    (x.data<float>() + begin * D, gamma.data<float>(), beta.data<float>(), static_cast<float>(eps), end - begin, D,
     y.mutable_data<float>() + begin * D, mean.mutable_data<float>() + begin, rstd.mutable_data<float>() + begin);
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Out& dx, const Out& dgamma,
                         const Out& dbeta) {
  const std::int64_t D = x.dim(-1), R = rstd.numel(), grain = partial_rows(R), blocks = (R + grain - 1) / grain;
  const Scratch partial(2 * blocks * D);
  float *const partial_gamma = partial.data(), *const partial_beta = partial_gamma + blocks * D;
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)
    (dy.data<float>() + begin * D, x.data<float>() + begin * D, gamma.data<float>(), mean.data<float>() + begin, rstd.data<float>() + begin,
     end - begin, D, dx.defined() ? dx.mutable_data<float>() + begin * D : nullptr, partial_gamma + begin / grain * D,
     partial_beta + begin / grain * D);
  });
  if (dgamma.defined()) add_partials(partial_gamma, blocks, D, dgamma.mutable_data<float>());
  if (dbeta.defined()) add_partials(partial_beta, blocks, D, dbeta.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
