// The mean of values with its 95 % Student-t interval.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

// Mean of n values and the 95 % Student-t interval mean ± half_width. One value has no interval; no value has no mean
// (NaN).
struct Summary {
  std::int64_t n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> deviation = {};   // sample standard deviation, divisor n - 1
  std::optional<double> half_width = {};  // t(0.975, n - 1) deviation / sqrt(n)

  double low() const { return mean - half_width.value_or(0); }
  double high() const { return mean + half_width.value_or(0); }
};

// Values that are not finite are left out and not counted in n.
Summary summarize(const std::vector<double>& values);

// "1.234 ± 0.05": as many digits after the point as keep four of the mean; "–" without a value.
std::string to_string(const Summary& summary);

}  // namespace plumb::lab
