// The trials of a study as reports see them, gathered by what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// The trials that differ only in their seed. The summaries are over the trials that ended ok: a diverged or failed one
// has no final loss.
struct TrialGroup {
  std::string method = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::vector<TrialResult> trials = {};
  std::int64_t ok = 0, diverged = 0, hopeless = 0, failed = 0;
  Summary train_loss = {}, val_loss = {}, val_accuracy = {};
  std::vector<Summary> further = {};
};

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

// By (method, depth, lr), in the order of first appearance.
std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials);

}  // namespace plumb::lab
