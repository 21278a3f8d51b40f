// The trials of a study as reports see them, gathered by what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// Trials that share their values on all axes but the seed, and perhaps one further axis. The members point into the
// list of trials that was grouped.
struct TrialGroup {
  Point point = {};         // the shared values
  std::string method = {};  // of the first trial
  std::vector<const TrialResult*> trials = {};

  std::int64_t depth() const { return depth_of(point); }  // 0 if the trials share none
  double lr() const { return lr_of(point); }              // 0 if the trials share none
  std::int64_t count(Status status) const;
  // Summarizes a measured value, "steps" or "seconds" over the trials that ended ok.
  Summary over_ok(std::string_view value) const;
};

// Groups trials that differ only in their seeds and, if given, in their values on the axis `across`. Groups are in the
// order of their first trials. `trials` must outlive the groups.
std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials, std::string_view across = {});

// The outcome of a group in words: "ok", "diverged at step 37", "2 of 3 diverged at steps 37 to 41; 1 of 3 failed".
std::string outcome(const TrialGroup& group);

// How many steps half of the trials of a group survive without diverging or being given up as hopeless; failed trials
// are left out. The 95 % interval is by order statistics (the sign test inverted; no assumption on their distribution)
// and needs six of them.
struct Survival {
  std::int64_t n = 0;
  std::optional<std::int64_t> median = {};  // nothing: more than half survived all steps
  bool has_interval = false;
  std::int64_t low = 0;                   // with an interval
  std::optional<std::int64_t> high = {};  // nothing: beyond the last step
};
Survival survival(const TrialGroup& group);
// "median survival 69 steps (95 % interval 41 to 120)"; "median survival beyond 300 steps (no interval below 6 seeds)"
std::string to_string(const Survival& survival, std::int64_t steps);

}  // namespace plumb::lab
