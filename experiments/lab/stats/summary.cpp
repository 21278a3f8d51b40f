#include "experiments/lab/stats/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace plumb::lab {

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
  s.half_width = quantile(boost::math::students_t(n - 1), 0.975) * *s.deviation / std::sqrt(n);
  return s;
}

std::size_t interval_rank(std::size_t n) {
  const boost::math::binomial heads(static_cast<double>(n), 0.5);
  std::size_t k = 0;
  while (k < n && cdf(heads, static_cast<double>(k)) <= 0.025) ++k;
  return k;
}

Median median_of(std::vector<double> values) {
  Median m{.n = std::ssize(values)};
  if (values.empty()) return m;
  std::ranges::sort(values);
  const std::size_t n = values.size(), k = interval_rank(n);
  m.value = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  if (k > 0) m.low = values[k - 1], m.high = values[n - k];
  return m;
}

Median negated(const Median& m) {
  Median n{.n = m.n, .value = -m.value};
  if (m.low) n.low = -*m.high, n.high = -*m.low;
  return n;
}

std::string to_string(const Summary& s) {
  if (s.n == 0) return "–";
  const bool wide = std::abs(s.mean) >= 1e5 || (s.mean != 0 && std::abs(s.mean) < 1e-3);
  const int decimals = std::clamp(3 - static_cast<int>(std::floor(std::log10(std::max(std::abs(s.mean), 1e-3)))), 0, 4);
  const auto shown = [&](double v) { return wide ? fmt::format("{:.3g}", v) : fmt::format("{:.{}f}", v, decimals); };
  return shown(s.mean) + (s.half_width ? " ± " + shown(*s.half_width) : "");
}

}  // namespace plumb::lab
