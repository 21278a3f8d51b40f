// Trials for tests of statistics and reports.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/lab/stats/conditions.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::test {

// A trial of 4 steps that ended ok and measured `values`.
inline lab::TrialResult trial_of(const std::string& method, std::int64_t depth, std::uint64_t seed, lab::Values values,
                                 double lr = 1e-3) {
  return {.method = method,
          .point = {{"gate", method}, {"depth", depth}, {"lr", lr}, {"seed", static_cast<std::int64_t>(seed)}},
          .steps = 4,
          .values = std::move(values)};
}

// A trial of 4 steps that ended ok with this training loss.
inline lab::TrialResult trial(const std::string& method, std::int64_t depth, std::uint64_t seed, double train_loss,
                              double lr = 1e-3) {
  return trial_of(method, depth, seed, {{"train_loss", train_loss}}, lr);
}

// A trial that diverged at `step`.
inline lab::TrialResult dead(const std::string& method, std::int64_t depth, std::uint64_t seed, std::int64_t step,
                             double lr = 1e-3) {
  lab::TrialResult a = trial_of(method, depth, seed, {{"diverged_at", static_cast<double>(step)}}, lr);
  a.status = lab::Status::diverged, a.steps = step;
  return a;
}

// Decides which trials trained, as judge_all() does. All their seeds are judged if `how` has none.
inline void prepare(std::vector<lab::TrialResult>& trials, lab::Judging& how) {
  std::set<std::uint64_t> seeds;
  for (lab::TrialResult& a : trials) a.trained = lab::has_trained(a, how.chance.loss), seeds.insert(a.seed());
  if (how.seeds.empty()) how.seeds.assign(seeds.begin(), seeds.end());
}

// The conditions of these trials.
inline std::vector<lab::Condition> conditions_of(std::vector<lab::TrialResult> trials, lab::Judging how = {},
                                                 const std::vector<lab::ClaimedPair>& claimed = {}) {
  prepare(trials, how);
  return lab::conditions(lab::group_trials(trials), how, claimed);
}

}  // namespace plumb::test
