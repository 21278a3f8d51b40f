// The steps at which the smoothed training loss of a trial first fell below some levels (Study::steps_to).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/train/divergence.h"

namespace plumb::lab {

// The beginning of the names of these values.
inline constexpr const char* steps_to_prefix = "steps_to_";
// The name of the value that a trial measures for a level: "steps_to_0.1" for 0.1.
std::string steps_to_name(double level);

// Watches the mean training loss over the last 20 steps (DivergenceWatch::recent_loss). Before 20 steps the mean is not
// defined.
class LossLevels {
 public:
  explicit LossLevels(std::vector<double> levels) : levels_(std::move(levels)) {}

  // Notes the levels that the loss is below. Call see() after `watch` has recorded the loss of step `step`, counted
  // from 0.
  void see(std::int64_t step, const DivergenceWatch& watch);
  // A value for each level: the number of steps after which the mean loss was first below the level, or `steps` if the
  // mean loss was never below the level. In the second case the number is censored: it means "at least".
  Values values(std::int64_t steps) const;

  // The levels that were reached, each with its number of steps. A checkpoint stores and restores this map.
  const std::map<double, std::int64_t>& reached() const { return reached_; }
  void set_reached(std::map<double, std::int64_t> reached) { reached_ = std::move(reached); }

 private:
  std::vector<double> levels_;
  std::map<double, std::int64_t> reached_;
};

}  // namespace plumb::lab
