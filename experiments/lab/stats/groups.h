// Groups of trials that differ only in their seeds, and the summaries of their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// Trials that have the same values on all axes other than the seed and, if group_trials() was asked so, one further
// axis. The trials point into the list that was grouped.
struct TrialGroup {
  Point point = {};         // the shared values
  std::string method = {};  // of the first trial
  std::vector<const TrialResult*> trials = {};

  std::int64_t depth() const { return depth_of(point); }  // 0 if the trials share none
  double lr() const { return lr_of(point); }              // 0 if the trials share none
  std::int64_t count(Status status) const;                // the number of trials with this status
  // Summarizes a measured value, "steps" or "seconds" over the trials that ended ok.
  Summary over_ok(std::string_view value) const;
};

// Groups trials that differ only in their seeds and, if given, in their values on the axis `across`. Groups are in the
// order of their first trials. `trials` must outlive the groups.
std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials, std::string_view across = {});

// The outcome of a group in words: "ok", "diverged at step 37", "2 of 3 diverged at steps 37 to 41; 1 of 3 failed".
std::string outcome(const TrialGroup& group);

// The median number of steps that trials of a group survive before they diverge or are stopped as hopeless. Failed
// trials are left out. The 95 % interval needs at least six trials. It comes from order statistics (the inverted sign
// test), so it assumes nothing about the distribution of the steps.
struct Survival {
  std::int64_t n = 0;
  std::optional<std::int64_t> median = {};  // empty if more than half of the trials survived all steps
  bool has_interval = false;
  std::int64_t low = 0;                   // end of the interval, if there is one
  std::optional<std::int64_t> high = {};  // the other end; empty if it is beyond the last step
};
// The survival of the trials of a group.
Survival survival(const TrialGroup& group);
// The survival in words, for trials of `steps` steps: "median survival 69 steps, n = 6 (95 % interval 41 to 120)" or
// "median survival beyond 300 steps, n = 3 (no interval below 6)".
std::string to_string(const Survival& survival, std::int64_t steps);

}  // namespace plumb::lab
