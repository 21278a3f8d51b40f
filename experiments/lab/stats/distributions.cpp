#include "experiments/lab/stats/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"

namespace plumb::lab {
namespace {

// So many cancel the digits of the gamma functions: the normal distribution, with Cornish and Fisher's expansion about
// its quantile, is better.
constexpr double many_degrees = 1e5;

// The regularised incomplete beta function I_x(a, b) by its continued fraction (modified Lentz), for x < (a + 1) / (a +
// b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double tiny = 1e-300, precision = 1e-16;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= 100000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < precision) break;
  }
  const double log_front = a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b);
  return std::exp(log_front) * h / a;
}

}  // namespace

double student_t_tail(double t, double degrees) {
  if (std::isinf(t)) return 0;
  if (degrees > many_degrees) return std::erfc(t / std::sqrt(2.0)) / 2;
  const double a = degrees / 2, b = 0.5, x = degrees / (degrees + t * t);
  if (x < (a + 1) / (a + b + 2)) return beta_fraction(x, a, b) / 2;
  const double complement = t * t / (degrees + t * t);
  return complement > 0 ? (1 - beta_fraction(complement, b, a)) / 2 : 0.5;
}

namespace {

double student_t_density(double t, double degrees) {
  if (std::isinf(degrees)) return std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi);
  const double log_front =
      std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) - std::log(degrees * std::numbers::pi) / 2;
  return std::exp(log_front - (degrees + 1) / 2 * std::log1p(t * t / degrees));
}

// The t > 0 with P(T > t) = tail < 1/2: Newton's method on log P over log t, which is concave, so that all steps after
// the first come from the right.
double invert_tail(double tail, double degrees) {
  double t = 1;
  for (int i = 0; i < 200; ++i) {
    const double p = student_t_tail(t, degrees);
    const double step =
        p > 0 ? std::clamp(std::log(p / tail) * p / (t * student_t_density(t, degrees)), -2.0, 2.0) : -2.0;
    t *= std::exp(step);
    if (std::abs(step) < 1e-15) break;
  }
  return t;
}

}  // namespace

double student_t_quantile(double p, double degrees) {
  check(p > 0 && p < 1 && degrees > 0,
        "[student_t_quantile] expected 0 < p < 1 and degrees > 0, got p = {}, degrees = {}", p, degrees);
  const double tail = std::min(p, 1 - p), sign = p < 0.5 ? -1 : 1;
  if (tail == 0.5) return 0;
  if (degrees <= many_degrees) return sign * invert_tail(tail, degrees);
  const double z = invert_tail(tail, std::numeric_limits<double>::infinity()), z2 = z * z;
  return sign * (z + z * (z2 + 1) / (4 * degrees) + z * ((5 * z2 + 16) * z2 + 3) / (96 * degrees * degrees));
}

}  // namespace plumb::lab
