// Means with 95 % Student-t intervals, and medians with 95 % intervals by the sign test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

// The mean of n values and its 95 % Student-t interval, mean ± half_width. The mean is NaN for n = 0, and there is no
// interval for n < 2.
struct Summary {
  std::int64_t n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> deviation = {};   // sample standard deviation, divisor n - 1
  std::optional<double> half_width = {};  // t(0.975, n - 1) deviation / sqrt(n)

  // The ends of the interval. If there is no interval, both ends are the mean.
  double low() const { return mean - half_width.value_or(0); }
  double high() const { return mean + half_width.value_or(0); }
};

// Summarizes values. Values that are not finite are left out and not counted in n.
Summary summarize(const std::vector<double>& values);

// The number k of order statistics below the 95 % interval of a median: the k-th smallest and the k-th largest of n
// values enclose the median with a chance of 1 - 2 P(Bin(n, 1/2) < k) >= 95 % (the inverted sign test). 0 for n < 6,
// which have no interval.
std::size_t interval_rank(std::size_t n);

// The median of n values, NaN for n = 0, and its 95 % interval. Infinite values count.
struct Median {
  std::int64_t n = 0;
  double value = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> low = {}, high = {};
};
Median median_of(std::vector<double> values);  // the median of `values`
Median negated(const Median& m);               // the median of the negated values

// The summary as text: "1.234 ± 0.050", or "–" without a value. A mean of common size has four significant digits.
std::string to_string(const Summary& summary);

}  // namespace plumb::lab
