// Layer norm over the last axis: y = gamma h + beta, h = (x - mean) rstd. The code works row by row, because a row
// stays in the first-level cache. The backward pass computes:
//   dx = rstd (u - mean(u) - h mean(u h)), u = gamma dy; dgamma = sum dy h, dbeta = sum dy.
// Each block of rows keeps partial sums of dgamma and dbeta.
#if defined(PLUMB_CPU_LAYER_NORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_LAYER_NORM_INL
#undef PLUMB_CPU_LAYER_NORM_INL
#else
#define PLUMB_CPU_LAYER_NORM_INL
#endif

#include <cmath>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Computes y = gamma h + beta for one row with known mean and rstd.
template <class Y>
HWY_INLINE void normalize_row(const float* x, const float* gamma, const float* beta, float mean, float rstd,
                              std::int64_t D, Y* y) {
  const V m = set(mean), s = set(rstd);
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    const V h = hn::Mul(hn::Sub(load(x + i, part), m), s);
    store(hn::MulAdd(h, load(gamma + i, part), load(beta + i, part)), y + i, part);
  });
}

template <class Y>
HWY_INLINE void layer_norm_rows(const float* x, const float* gamma, const float* beta, float eps, std::int64_t rows,
                                std::int64_t D, Y* y, float* mean, float* rstd) {
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
    normalize_row(x, gamma, beta, m, s, D, y);
    mean[r] = m;
    rstd[r] = s;
  }
}

// dx may be null. If `accumulate`, the gradient is added to dx. dgamma and dbeta [D] get the partial sums of this
// block. If y is not null, y gets the result of the forward pass again, with the same bits. beta is needed only for y.
template <class Y>
HWY_INLINE void layer_norm_backward_rows(const float* dy, const float* x, const float* gamma, const float* mean,
                                         const float* rstd, std::int64_t rows, std::int64_t D, float* dx,
                                         bool accumulate, float* dgamma, float* dbeta, const float* beta, Y* y) {
  const float scale = 1 / static_cast<float>(D);
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    store(zero(), dgamma + i, part);
    store(zero(), dbeta + i, part);
  });
  for (std::int64_t r = 0; r < rows; ++r, x += D, dy += D) {
    const V m = set(mean[r]), s = set(rstd[r]);
    V sum_u = zero(), sum_uh = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V g = load(dy + i, part), h = hn::Mul(hn::Sub(load(x + i, part), m), s), gain = load(gamma + i, part),
              u = hn::Mul(g, gain);
      if (y) store(hn::MulAdd(h, gain, load(beta + i, part)), y + i, part);
      sum_u = hn::Add(sum_u, u);
      sum_uh = hn::MulAdd(u, h, sum_uh);
      store(hn::MulAdd(g, h, load(dgamma + i, part)), dgamma + i, part);
      store(hn::Add(g, load(dbeta + i, part)), dbeta + i, part);
    });
    if (y) y += D;
    if (!dx) continue;
    const V mean_u = set(sum_lanes(sum_u) * scale), mean_uh = set(sum_lanes(sum_uh) * scale);
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V h = hn::Mul(hn::Sub(load(x + i, part), m), s), u = hn::Mul(load(dy + i, part), load(gamma + i, part));
      const V d = hn::Mul(s, hn::NegMulAdd(h, mean_uh, hn::Sub(u, mean_u)));
      store(accumulate ? hn::Add(load(dx + i, part), d) : d, dx + i, part);
    });
    dx += D;
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
