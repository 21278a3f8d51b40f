// Groups of trials that differ only in their seeds, and summaries of the values in a group.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// Trials that have the same values on all axes other than the seed and, if given, the axis `across` of group_trials().
// The pointers point into the list that was grouped.
struct TrialGroup {
  Point point = {};         // the shared values
  std::string method = {};  // method of the first trial
  std::vector<const TrialResult*> trials = {};
  // The trials of the same combination at this many half octaves above its learning rate.
  std::map<int, std::vector<const TrialResult*>> neighbours = {};

  std::int64_t depth() const { return depth_of(point); }  // 0 if the trials have no common depth
  double lr() const { return lr_of(point); }              // 0 if the trials have no common learning rate
  std::int64_t count(Status status) const;                // the number of trials with this status
  // The trials of which means are taken: those that ended ok and trained, or, if none trained, all that ended ok.
  std::vector<const TrialResult*> averaged() const;
  // Summarizes a measured value, "steps" or "seconds", over averaged().
  Summary summary(std::string_view value) const;
};

// Groups trials that differ only in their seeds. If `across` is given, trials of a group may also differ on this axis.
// Groups are in the order of their first trials. `trials` must outlive the groups.
std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials, std::string_view across = {});
// Adds trials at neighbouring rates to the groups of their combinations.
void add_neighbours(std::vector<TrialGroup>& groups, const std::vector<TrialResult>& neighbours);

// The outcome of a group in words: "ok", "diverged at step 37", "2 of 3 diverged at steps 37 to 41; 1 of 3 failed",
// "1 of 3 did not train". `not_trained` are the words for trials that ended ok and did not train.
std::string outcome(const TrialGroup& group, const char* not_trained = "did not train");

}  // namespace plumb::lab
