// Layer norm (Ba et al. 2016): y = gamma (x - mean) rstd + beta, rstd = (var + eps)^-1/2, var divided by D.
//   dx = rstd (u - mean(u) - h mean(u h)), u = gamma dy, h = (x - mean) rstd; dgamma = sum dy h; dbeta = sum dy.
// RMS norm (Zhang, Sennrich 2019): y = gamma x rstd, rstd = (mean(x^2) + eps)^-1/2; dx = rstd (u - h mean(u h)), h = x rstd.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// Both backward passes: RMS norm is the one without mean (undefined) and beta.
void norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Out& dx, const Out& dgamma,
                   const Out& dbeta) {
  const Values from(x), d(dy), gain(gamma), means(mean), rstds(rstd);
  const OutValues gradient(dx), gain_gradient(dgamma), shift_gradient(dbeta);
  const std::int64_t D = x.dim(-1), R = rstd.numel();
  std::vector<double> dg(static_cast<std::size_t>(D)), db(static_cast<std::size_t>(D));
  for (std::int64_t r = 0; r < R; ++r) {
    const double m = mean.defined() ? means[r] : 0, s = rstds[r];
    double mean_u = 0, mean_uh = 0;
    for (std::int64_t i = 0; i < D; ++i) {
      const double g = d[r * D + i], h = (from[r * D + i] - m) * s, u = gain[i] * g;
      mean_u += u / static_cast<double>(D);
      mean_uh += u * h / static_cast<double>(D);
      dg[static_cast<std::size_t>(i)] += g * h;
      db[static_cast<std::size_t>(i)] += g;
    }
    if (!dx.defined()) continue;
    for (std::int64_t i = 0; i < D; ++i) {
      const double h = (from[r * D + i] - m) * s, u = gain[i] * d[r * D + i];
      gradient.set(r * D + i, s * (u - (mean.defined() ? mean_u : 0) - h * mean_uh));
    }
  }
  for (std::int64_t i = 0; i < D; ++i) {
    if (dgamma.defined()) gain_gradient.set(i, dg[static_cast<std::size_t>(i)]);
    if (dbeta.defined()) shift_gradient.set(i, db[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y, const Out& mean, const Out& rstd) {
  const Values from(x), gain(gamma), shift(beta);
  const OutValues result(y), means(mean), rstds(rstd);
  const std::int64_t D = x.dim(-1);
  for (std::int64_t r = 0; r < rstd.numel(); ++r) {
    double m = 0, var = 0;
    for (std::int64_t i = 0; i < D; ++i) m += from[r * D + i] / static_cast<double>(D);
    for (std::int64_t i = 0; i < D; ++i) var += (from[r * D + i] - m) * (from[r * D + i] - m) / static_cast<double>(D);
    const double s = 1 / std::sqrt(var + eps);
    means.set(r, m);
    rstds.set(r, s);
    for (std::int64_t i = 0; i < D; ++i) result.set(r * D + i, gain[i] * ((from[r * D + i] - m) * s) + shift[i]);
  }
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Out& dx, const Out& dgamma,
                         const Out& dbeta) {
  norm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
}

void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Out& y, const Out& rstd) {
  const Values from(x), gain(gamma);
  const OutValues result(y), rstds(rstd);
  const std::int64_t D = x.dim(-1);
  for (std::int64_t r = 0; r < rstd.numel(); ++r) {
    double square = 0;
    for (std::int64_t i = 0; i < D; ++i) square += from[r * D + i] * from[r * D + i] / static_cast<double>(D);
    const double s = 1 / std::sqrt(square + eps);
    rstds.set(r, s);
    for (std::int64_t i = 0; i < D; ++i) result.set(r * D + i, gain[i] * (from[r * D + i] * s));
  }
}

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Out& dx, const Out& dgamma) {
  norm_backward(dy, x, gamma, Array(), rstd, dx, dgamma, Out());
}

}  // namespace plumb::reference
