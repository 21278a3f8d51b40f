// Says whether a task was too easy to rank methods.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// The share of an accuracy from which methods cannot be ranked by it.
inline constexpr double saturated_accuracy = 0.97;

// A sentence that names the depths at which the best mean of val_accuracy is at least saturated_accuracy. There,
// accuracies cannot rank the best methods, and a loss is a statement about speed. Empty if there is no such depth.
std::string saturation(const std::vector<TrialResult>& trials);

}  // namespace plumb::lab
