// The learning rates that searches have chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/record/measure.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// The learning rate of one combination of values on the other axes of a study, and the trials of the search that chose
// the rate.
struct RateChoice {
  // The combination, without learning rate and seed. With Study::one_rate_for(), it also lacks the axes whose values
  // share the rate, and the values of the search are sums over them.
  Point cell = {};
  double rate = 0;  // the chosen learning rate
  RateCriterion by = {};
  // The rates that the search tried, in ascending order, each with its value of the criterion. The value is infinite if
  // the trial diverged, was stopped as hopeless or had no finite value.
  std::vector<std::pair<double, double>> tried = {};
  std::uint64_t seed = 0;  // the seed that chose
  bool at_bound = false;   // whether the chosen rate is the lowest or the highest rate that was tried
  // The rate with the best value, if it was passed over because the next higher rate failed (study/rate_search.h).
  std::optional<double> passed_over = {};
  // Whether the losses at all rates are equal, because the body does not read its rate. No rate is then shown: tables
  // and claims have no learning rate for this combination.
  bool unread = false;
  // Why no rate of the search trains, such as "stayed near chance at 0.000375 to 0.003"; empty if a rate trains.
  std::string blind = {};
  std::vector<int> beyond = {};  // the neighbours, in half octaves, that the option of the rate does not accept
};

// The choice for a combination of the axes; null if there is none yet.
const RateChoice* choice_for(const std::vector<RateChoice>& rates, const Point& cell);

// The rate this many half octaves above `rate`, with three significant digits.
double rate_at(double rate, double half_octaves);

}  // namespace plumb::lab
