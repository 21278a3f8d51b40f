// Says whether a task was too easy to rank methods.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/measure.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// The value of a score in 0..1, such as an accuracy, from which it cannot rank methods.
inline constexpr double saturated_score = 0.97;

// A sentence that names the depths at which the best mean of the problem's score is at least saturated_score. There,
// the score cannot rank the best methods, and a loss is a statement about speed. Empty if there is no such depth, or if
// the score is no fraction.
std::string saturation(const std::vector<TrialResult>& trials, const std::vector<Measure>& measures);

}  // namespace plumb::lab
