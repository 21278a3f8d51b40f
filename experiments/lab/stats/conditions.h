// The comparisons and the conditions of a study, from the groups of its trials.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// The comparison of two series on a value. The second group is null for a claim against a constant, which is in the
// units of the value. `rates_matter` is false if the value does not depend on the learning rate.
Contrast contrast_of(const TrialGroup& first, const TrialGroup* second, const std::string& value, const Judging& how,
                     double constant = 0, bool rates_matter = true);

// The verdict of a claim on two combinations of the axes. Claims are a family of their own (claims.h). If both are in
// one condition, the verdict of the claim replaces the verdict on this pair there.
struct ClaimedPair {
  Point first = {}, second = {};                            // combinations of the axes
  std::optional<double> rate_first = {}, rate_second = {};  // their learning rates
  Difference difference = {};
};

// The conditions of a study by ascending depth, then learning rate. `groups` are those of group_trials().
std::vector<Condition> conditions(const std::vector<TrialGroup>& groups, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed = {});

}  // namespace plumb::lab
