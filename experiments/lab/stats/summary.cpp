#include "experiments/lab/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <tuple>

#include "core/error.h"

namespace plumb::lab {
namespace {

// So many cancel the digits of the gamma functions: the normal distribution, with Cornish and Fisher's expansion about its quantile, is better.
constexpr double many_degrees = 1e5;

// The regularised incomplete beta function I_x(a, b) by its continued fraction (modified Lentz), for x < (a + 1) / (a + b + 2).
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
  const double log_front = std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) - std::log(degrees * std::numbers::pi) / 2;
  return std::exp(log_front - (degrees + 1) / 2 * std::log1p(t * t / degrees));
}

// The t > 0 with P(T > t) = tail < 1/2: Newton's method on log P over log t, which is concave, so that all steps after the first come from the right.
double invert_tail(double tail, double degrees) {
  double t = 1;
  for (int i = 0; i < 200; ++i) {
    const double p = student_t_tail(t, degrees);
    const double step = p > 0 ? std::clamp(std::log(p / tail) * p / (t * student_t_density(t, degrees)), -2.0, 2.0) : -2.0;
    t *= std::exp(step);
    if (std::abs(step) < 1e-15) break;
  }
  return t;
}

}  // namespace

double student_t_quantile(double p, double degrees) {
  check(p > 0 && p < 1 && degrees > 0, "[student_t_quantile] expected 0 < p < 1 and degrees > 0, got p = {}, degrees = {}", p, degrees);
  const double tail = std::min(p, 1 - p), sign = p < 0.5 ? -1 : 1;
  if (tail == 0.5) return 0;
  if (degrees <= many_degrees) return sign * invert_tail(tail, degrees);
  const double z = invert_tail(tail, std::numeric_limits<double>::infinity()), z2 = z * z;
  return sign * (z + z * (z2 + 1) / (4 * degrees) + z * ((5 * z2 + 16) * z2 + 3) / (96 * degrees * degrees));
}

Summary summarize(const std::vector<double>& values) {
  Summary s;
  double sum = 0, squares = 0;
  for (double v : values)
    if (std::isfinite(v)) sum += v, ++s.n;
  if (s.n == 0) return s;
  const auto n = static_cast<double>(s.n);
  s.mean = sum / n;
  if (s.n == 1) return s;
  for (double v : values)
    if (std::isfinite(v)) squares += (v - s.mean) * (v - s.mean);
  s.deviation = std::sqrt(squares / (n - 1));
  s.half_width = student_t_quantile(0.975, n - 1) * *s.deviation / std::sqrt(n);
  return s;
}

std::string to_string(const Summary& s) {
  if (s.n == 0) return "–";
  const bool wide = std::abs(s.mean) >= 1e5 || (s.mean != 0 && std::abs(s.mean) < 1e-3);
  const int decimals = std::clamp(3 - static_cast<int>(std::floor(std::log10(std::max(std::abs(s.mean), 1e-3)))), 0, 4);
  const auto shown = [&](double v) { return wide ? fmt::format("{:.3g}", v) : fmt::format("{:.{}f}", v, decimals); };
  return shown(s.mean) + (s.half_width ? " ± " + shown(*s.half_width) : "");
}

std::vector<ArmGroup> group_arms(const std::vector<ArmResult>& arms) {
  std::vector<ArmGroup> groups;
  std::map<std::tuple<std::string, std::int64_t, double>, std::size_t> places;
  for (const ArmResult& a : arms) {
    const auto [place, is_new] = places.try_emplace({a.gate, a.depth, a.lr}, groups.size());
    if (is_new) groups.push_back({.gate = a.gate, .depth = a.depth, .lr = a.lr});
    ArmGroup& g = groups[place->second];
    g.arms.push_back(a);
    ++(a.status == Status::ok ? g.ok : a.status == Status::diverged ? g.diverged : a.status == Status::hopeless ? g.hopeless : g.failed);
  }
  for (ArmGroup& g : groups) {
    const auto over_ok = [&](std::optional<double> ArmResult::*field) {
      std::vector<double> values;
      for (const ArmResult& a : g.arms)
        if (a.status == Status::ok && a.*field) values.push_back(*(a.*field));
      return summarize(values);
    };
    g.train_loss = over_ok(&ArmResult::train_loss);
    g.val_loss = over_ok(&ArmResult::val_loss);
    g.val_accuracy = over_ok(&ArmResult::val_accuracy);
    for (std::size_t i = 0; i < g.arms.front().further.size(); ++i) {
      std::vector<double> values;
      for (const ArmResult& a : g.arms)
        if (a.status == Status::ok) values.push_back(a.further[i]);
      g.further.push_back(summarize(values));
    }
  }
  return groups;
}

Survival survival(const ArmGroup& group) {
  constexpr std::int64_t beyond = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> times;
  for (const ArmResult& a : group.arms) {
    if (a.status == Status::failed) continue;
    // One that was given up counts as lost when it was: so do verdicts.
    times.push_back(a.status == Status::ok ? beyond : a.diverged_at.value_or(a.steps));
  }
  std::ranges::sort(times);
  Survival s{.n = static_cast<std::int64_t>(times.size())};
  if (times.empty()) return s;
  const auto at = [&](std::size_t i) { return times[i] == beyond ? std::nullopt : std::optional(times[i]); };
  // The first time by which half are gone (Kaplan and Meier's estimate, where nothing is lost on the way).
  s.median = at((times.size() - 1) / 2);
  // The k-th smallest and the k-th largest hold the median with probability 1 - 2 P(Bin(n, 1/2) < k): the largest k that leaves 95 %.
  double tail = 0, term = std::pow(0.5, static_cast<double>(s.n));
  std::size_t k = 0;
  for (std::size_t i = 0; tail + term <= 0.025 && i < times.size(); ++i, ++k) {
    tail += term;
    term *= static_cast<double>(times.size() - i) / static_cast<double>(i + 1);
  }
  s.has_interval = k > 0 && at(k - 1);
  if (s.has_interval) s.low = *at(k - 1), s.high = at(times.size() - k);
  return s;
}

std::string to_string(const Survival& s, std::int64_t steps) {
  std::string text = s.median ? fmt::format("median survival {} steps", *s.median) : fmt::format("median survival beyond {} steps", steps);
  text += fmt::format(", n = {}", s.n);
  if (s.n < 6) return text + " (no interval below 6)";
  if (!s.has_interval) return text + ", and so is its 95 % interval";
  return text + (s.high ? fmt::format(" (95 % interval {} to {})", s.low, *s.high) : fmt::format(" (95 % interval {} to beyond {})", s.low, steps));
}

}  // namespace plumb::lab
