// The arms of a study as reports see them, gathered by what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// The arms that differ only in their seed. The summaries are over the arms that ended ok: a diverged or failed one has no final loss.
struct ArmGroup {
  std::string gate = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::vector<ArmResult> arms = {};
  std::int64_t ok = 0, diverged = 0, hopeless = 0, failed = 0;
  Summary train_loss = {}, val_loss = {}, val_accuracy = {};
  std::vector<Summary> further = {};
};

// How many steps half of the arms of a group survive without diverging or being given up as hopeless; failed arms are left out. The 95 % interval is
// by order statistics (the sign test inverted; no assumption on their distribution) and needs six of them.
struct Survival {
  std::int64_t n = 0;
  std::optional<std::int64_t> median = {};  // nothing: more than half survived all steps
  bool has_interval = false;
  std::int64_t low = 0;                   // with an interval
  std::optional<std::int64_t> high = {};  // nothing: beyond the last step
};
Survival survival(const ArmGroup& group);
// "median survival 69 steps (95 % interval 41 to 120)"; "median survival beyond 300 steps (no interval below 6 seeds)"
std::string to_string(const Survival& survival, std::int64_t steps);

// By (gate, depth, lr), in the order of first appearance.
std::vector<ArmGroup> group_arms(const std::vector<ArmResult>& arms);

}  // namespace plumb::lab
