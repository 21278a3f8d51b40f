#include "experiments/lab/options/budget.h"

#include <charconv>
#include <cmath>
#include <string>

#include "experiments/lab/cli/cli.h"

namespace plumb::lab {

Budget budget_from(const std::string& text) {
  Budget budget;
  if (text.empty()) return budget;
  const bool hours = text.ends_with('h');
  double number = 0;
  const char* const last = text.data() + text.size() - hours;
  const auto [end, error] = std::from_chars(text.data(), last, number);
  usage_check(
      error == std::errc() && end == last && number > 0 && number <= 1e9 && (hours || number == std::floor(number)),
      "--budget: expected a number of trials, such as 50, or of hours, such as 4h, got '{}'", text);
  hours ? budget.seconds = 3600 * number : budget.trials = static_cast<std::int64_t>(number);
  return budget;
}

}  // namespace plumb::lab
