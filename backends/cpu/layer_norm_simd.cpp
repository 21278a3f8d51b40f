// Layer norm over the last axis, row by row (a row stays in the first cache): y = gamma h + beta, h = (x - mean) rstd.
// Backward: dx = rstd (u - mean(u) - h mean(u h)), u = gamma dy; dgamma = sum dy h, dbeta = sum dy by partial sums of blocks of rows.
#include <cmath>

#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/layer_norm_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

template <class Y>
HWY_INLINE void layer_norm_rows(const float* x, const float* gamma, const float* beta, float eps, std::int64_t rows, std::int64_t D, Y* y,
                                float* mean, float* rstd) {
  const float scale = 1 / static_cast<float>(D);
  for (std::int64_t r = 0; r < rows; ++r, x += D, y += D) {
    V sum = zero(), squares = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { sum = hn::Add(sum, load(x + i, part)); });
    const float m = sum_lanes(sum) * scale;
    const V vm = set(m);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V d = or_else(hn::Sub(load(x + i, part), vm), zero(), part);
      squares = hn::MulAdd(d, d, squares);
    });
    const float s = 1 / std::sqrt(sum_lanes(squares) * scale + eps);
    const V vs = set(s);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(x + i, part), vm), vs);
      store(hn::MulAdd(h, load(gamma + i, part), load(beta + i, part)), y + i, part);
    });
    mean[r] = m;
    rstd[r] = s;
  }
}

void LayerNormRows(const float* x, const float* gamma, const float* beta, float eps, std::int64_t rows, std::int64_t D, const Elements& y,
                   float* mean, float* rstd) {
  typed(y, [&](auto* to) HWY_ATTR { layer_norm_rows(x, gamma, beta, eps, rows, D, to, mean, rstd); });
}

// dx may be null; dgamma and dbeta [D] are this block's partial sums.
template <class DY>
HWY_INLINE void layer_norm_backward_rows(const DY* dy, const float* x, const float* gamma, const float* mean, const float* rstd, std::int64_t rows,
                                         std::int64_t D, float* dx, float* dgamma, float* dbeta) {
  const float scale = 1 / static_cast<float>(D);
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    store(zero(), dgamma + i, part);
    store(zero(), dbeta + i, part);
  });
  for (std::int64_t r = 0; r < rows; ++r, x += D, dy += D) {
    const V m = set(mean[r]), s = set(rstd[r]);
    V sum_u = zero(), sum_uh = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = load(dy + i, part), h = hn::Mul(hn::Sub(load(x + i, part), m), s), u = hn::Mul(g, load(gamma + i, part));
      sum_u = hn::Add(sum_u, u);
      sum_uh = hn::MulAdd(u, h, sum_uh);
      store(hn::MulAdd(g, h, load(dgamma + i, part)), dgamma + i, part);
      store(hn::Add(g, load(dbeta + i, part)), dbeta + i, part);
    });
    if (!dx) continue;
    const V mean_u = set(sum_lanes(sum_u) * scale), mean_uh = set(sum_lanes(sum_uh) * scale);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(x + i, part), m), s), u = hn::Mul(load(dy + i, part), load(gamma + i, part));
      store(hn::Mul(s, hn::NegMulAdd(h, mean_uh, hn::Sub(u, mean_u))), dx + i, part);
    });
    dx += D;
  }
}

void LayerNormBackwardRows(const Elements& dy, const float* x, const float* gamma, const float* mean, const float* rstd, std::int64_t rows,
                           std::int64_t D, float* dx, float* dgamma, float* dbeta) {
  typed(dy, [&](const auto* from) HWY_ATTR { layer_norm_backward_rows(from, x, gamma, mean, rstd, rows, D, dx, dgamma, dbeta); });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormBackwardRows);

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Array& y, const Array& mean, const Array& rstd) {
  const std::int64_t D = x.dim(-1);
  parallel_rows(rstd.numel(), D, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRows)
    (x.data<float>() + begin * D, gamma.data<float>(), beta.data<float>(), static_cast<float>(eps), end - begin, D, Elements(y) + begin * D,
     mean.mutable_data<float>() + begin, rstd.mutable_data<float>() + begin);
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Array& dx,
                         const Array& dgamma, const Array& dbeta) {
  const std::int64_t D = x.dim(-1), R = rstd.numel(), grain = partial_rows(R), blocks = (R + grain - 1) / grain;
  const Scratch partial(2 * blocks * D);
  float *const partial_gamma = partial.data(), *const partial_beta = partial_gamma + blocks * D;
  parallel_for(R, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormBackwardRows)
    (Elements(dy) + begin * D, x.data<float>() + begin * D, gamma.data<float>(), mean.data<float>() + begin, rstd.data<float>() + begin, end - begin,
     D, dx.defined() ? dx.mutable_data<float>() + begin * D : nullptr, partial_gamma + begin / grain * D, partial_beta + begin / grain * D);
  });
  if (dgamma.defined()) add_partials(partial_gamma, blocks, D, dgamma.mutable_data<float>());
  if (dbeta.defined()) add_partials(partial_beta, blocks, D, dbeta.mutable_data<float>());
}

}  // namespace plumb::cpu
#endif
