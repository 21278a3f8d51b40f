// Layer norm (Ba et al. 2016): y = gamma (x - mean) rstd + beta, rstd = (var + eps)^-1/2. The variance is the sum of
// squares divided by D.
//   dx = rstd (u - mean(u) - h mean(u h)), u = gamma dy, h = (x - mean) rstd; dgamma = sum dy h; dbeta = sum dy.
// RMS norm (Zhang, Sennrich 2019): y = gamma x rstd, rstd = (mean(x^2) + eps)^-1/2.
//   dx = rstd (u - h mean(u h)), h = x rstd.
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

// Computes the backward pass of both norms. For RMS norm, mean and dbeta are undefined.
void norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd,
                   const Out& dx, const Out& dgamma, const Out& dbeta) {
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

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y,
                        const Out& mean, const Out& rstd) {
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

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd,
                         const Out& dx, const Out& dgamma, const Out& dbeta) {
  norm_backward(dy, x, gamma, mean, rstd, dx, dgamma, dbeta);
}

void layer_norm_second(const Array& g, const Array& dy, const Array& x, const Array& gamma, const Array& mean,
                       const Array& rstd, const Out& ddy, const Out& dx, const Out& dgamma) {
  const Values from(x), gradient(g), d(dy), gain(gamma), means(mean), rstds(rstd);
  const OutValues to_dy(ddy), to_x(dx), to_gain(dgamma);
  const std::int64_t D = x.dim(-1);
  const auto width = static_cast<std::size_t>(D);
  std::vector<double> sums(width), h(width), u(width), t(width);
  for (std::int64_t r = 0; r < rstd.numel(); ++r) {
    const double s = rstds[r];
    const auto mean_of = [&](auto&& f) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += f(i);
      return sum / static_cast<double>(D);
    };
    const auto row = [&](const Values& values, std::size_t i) { return values[r * D + static_cast<std::int64_t>(i)]; };
    for (std::size_t i = 0; i < width; ++i) {
      h[i] = (row(from, i) - means[r]) * s;
      u[i] = gain[static_cast<std::int64_t>(i)] * row(d, i);
    }
    const double g1 = mean_of([&](std::size_t i) { return row(gradient, i); }),
                 u1 = mean_of([&](std::size_t i) { return u[i]; });
    const double gh = mean_of([&](std::size_t i) { return row(gradient, i) * h[i]; }),
                 uh = mean_of([&](std::size_t i) { return u[i] * h[i]; });
    const double gu = mean_of([&](std::size_t i) { return row(gradient, i) * u[i]; });
    for (std::size_t i = 0; i < width; ++i) t[i] = row(gradient, i) * uh + u[i] * gh;
    const double t1 = mean_of([&](std::size_t i) { return t[i]; }),
                 th = mean_of([&](std::size_t i) { return t[i] * h[i]; });
    for (std::size_t i = 0; i < width; ++i) {
      const std::int64_t at = r * D + static_cast<std::int64_t>(i);
      const double p = s * (gradient[at] - g1 - h[i] * gh);
      to_dy.set(at, gain[static_cast<std::int64_t>(i)] * p);
      to_x.set(at, -s * s * (t[i] - t1 - h[i] * th) - s * s * h[i] * (gu - g1 * u1 - gh * uh));
      sums[i] += d[at] * p;
    }
  }
  for (std::size_t i = 0; i < width; ++i) to_gain.set(static_cast<std::int64_t>(i), sums[i]);
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

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Out& dx,
                       const Out& dgamma) {
  norm_backward(dy, x, gamma, Array(), rstd, dx, dgamma, Out());
}

}  // namespace plumb::reference
