// The checks of anomaly mode.
#include "autograd/debug.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "core/backend.h"

namespace plumb {
namespace {

bool& anomaly() {
  thread_local bool on = false;
  return on;
}

bool& paused() {
  thread_local bool p = false;
  return p;
}

}  // namespace

AnomalyMode::AnomalyMode() : value_(anomaly(), true) {}

bool all_finite(const Array& a) {
  if (!is_real(a.dtype())) return true;
  if (std::isfinite(sum_of_squares(a))) return true;
  // An infinite sum of squares does not decide, because the squares of large f64 values overflow.
  const std::vector<double> values = to_vector(a);
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

namespace detail {

PauseAnomalyMode::PauseAnomalyMode() : value_(paused(), true) {}

Array numbers_to_check(const Array& numbers) {
  return in_host_memory(numbers.device()) || (anomaly() && !paused()) ? on_host(numbers) : Array();
}

void check_finite(const char* op, const Array& y) {
  if (!anomaly() || paused() || all_finite(y)) return;
  const std::vector<double> values = to_vector(y);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t bad = 0, first = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    } else {
      ++bad;
      first = std::min(first, i);
    }
  }
  fail(fmt::format("[{}] made {} of {} elements non-finite (first: {} at {}){}", op, bad, values.size(),
                   std::isnan(values[first]) ? "nan"
                   : values[first] > 0       ? "inf"
                                             : "-inf",
                   first,
                   bad < values.size() ? fmt::format(", finite elements lie in {:.3g}..{:.3g}", low, high) : ""));
}

}  // namespace detail
}  // namespace plumb
