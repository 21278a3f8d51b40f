// GELU (Hendrycks, Gimpel 2016), its slope and its curvature.
//   erf form: x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2; derivative Phi(x) + x phi(x).
//   tanh form: x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
#include <cmath>
#include <numbers>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

struct Derivatives {
  double value, slope, curvature;
};

Derivatives gelu(Gelu form, double x) {
  if (form == Gelu::erf) {
    const double cdf = 0.5 * (1 + std::erf(x * std::numbers::sqrt2 / 2)),
                 pdf = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return {x * cdf, cdf + x * pdf, pdf * (2 - x * x)};
  }
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, t = std::tanh(c * (x + 0.044715 * x * x * x));
  const double du = c * (1 + 3 * 0.044715 * x * x), ddu = c * 6 * 0.044715 * x, dt = (1 - t * t) * du;
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * dt, dt + 0.5 * x * (1 - t * t) * (ddu - 2 * t * du * du)};
}

}  // namespace

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  const Values from(x), bias(b);
  const OutValues values(y), slopes(dgelu);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto [value, slope, curvature] = gelu(form, from[i] + (b.defined() ? bias[i % b.numel()] : 0));
    values.set(i, value);
    if (dgelu.defined()) slopes.set(i, slope);
  }
}

void gelu_second(Gelu form, const Array& g, const Array& dy, const Array& x, const Out& ddy, const Out& dx) {
  const Values from(x), gradient(g), d(dy);
  const OutValues to_dy(ddy), to_x(dx);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const Derivatives at = gelu(form, from[i]);
    to_dy.set(i, gradient[i] * at.slope);
    if (dx.defined()) to_x.set(i, gradient[i] * d[i] * at.curvature);
  }
}

}  // namespace plumb::reference
