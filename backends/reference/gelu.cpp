// GELU (Hendrycks, Gimpel 2016): x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2; derivative Phi(x) + x phi(x).
// tanh form: x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
#include <cmath>
#include <numbers>

#include "backends/reference/kernels.h"
#include "backends/reference/values.h"

namespace plumb::reference {
namespace {

struct ValueAndSlope {
  double value, slope;
};

ValueAndSlope gelu(Gelu form, double x) {
  if (form == Gelu::erf) {
    const double cdf = 0.5 * (1 + std::erf(x * std::numbers::sqrt2 / 2)),
                 pdf = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return {x * cdf, cdf + x * pdf};
  }
  const double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, t = std::tanh(c * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)};
}

}  // namespace

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  const Values from(x), bias(b);
  const OutValues values(y), slopes(dgelu);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto [value, slope] = gelu(form, from[i] + (b.defined() ? bias[i % b.numel()] : 0));
    values.set(i, value);
    if (dgelu.defined()) slopes.set(i, slope);
  }
}

}  // namespace plumb::reference
