// Results of trials in the form that reports use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// The result of one trial, with the name of its method in reports.
struct TrialResult {
  std::string method = {};  // label of the values on all axes other than depth, lr and seed
  Point point = {};
  Status status = Status::ok;
  std::int64_t steps = 0;  // number of optimizer steps taken
  double seconds = 0;      // time of these steps
  Values values = {};      // losses in nats per sample, accuracies as fractions in [0, 1]
  // Whether the trial trained: has_trained(), which trial_results() calls. Means leave out other trials.
  bool trained = true;

  std::int64_t depth() const;  // 0 if the study has no axis "depth" of integers
  double lr() const;           // 0 if the study has no axis "lr"
  std::uint64_t seed() const;  // throws Error if the point has no seed
  // A measured value, "steps" or "seconds". Empty if the trial did not measure the value, or if the value is not
  // finite.
  std::optional<double> value(std::string_view name) const;
  // The value for comparisons. The outcome is infinite if the trial diverged or was stopped as hopeless, even if the
  // trial has measured a value. The outcome is `unknown` if the trial failed or if the value is not finite.
  double outcome(std::string_view name) const;
  std::optional<std::int64_t> diverged_at() const;  // step of the divergence; empty without one
  // The outcome "train_loss" for comparisons with the chance loss `chance` (clean_loss in record/chance.h).
  double clean_loss(double chance) const;
};

// A training loss of at least this share of the chance loss counts as "near chance".
inline constexpr double near_chance_share = 0.95;
// Whether a trial trained: it ended ok, and its training loss, if it has one, is not near the chance loss `chance`.
// Both losses count from the entropy of the targets (clean_loss).
bool has_trained(const TrialResult& trial, double chance);

// The depth and the learning rate of a point, as in TrialResult.
std::int64_t depth_of(const Point& point);
double lr_of(const Point& point);

}  // namespace plumb::lab
