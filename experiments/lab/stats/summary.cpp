#include "experiments/lab/stats/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/stats/distributions.h"

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

}  // namespace plumb::lab
