// The budget of a call that trains until its claims are decided.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace plumb::lab {

// The number of trials that a call may train, and the time in seconds after which it begins no further one.
struct Budget {
  std::int64_t trials = std::numeric_limits<std::int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
};

// Reads the value of --budget: "50" trials, or "4h". With "", nothing is limited. Throws UsageError for another text.
Budget budget_from(const std::string& text);

}  // namespace plumb::lab
