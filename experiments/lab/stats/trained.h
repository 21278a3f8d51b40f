// Decides which trials trained. Verdicts on losses concern trials that trained (comparison.h). All losses of this file
// are losses for comparisons with chance (clean_loss in record/chance.h): training losses above the entropy of their
// targets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiments/lab/stats/comparison.h"

namespace plumb::lab {

// A training loss of at least this share of the chance loss counts as "near chance".
inline constexpr double near_chance_share = 0.95;

// The gap between the losses of trials that trained and of trials that did not.
struct TrainingGap {
  double below, above;  // the largest loss that trained, and the smallest loss that did not train
};

// Finds the gap in the losses of a section: series that were trained under one condition. There is a gap between two
// neighbouring losses if all of these conditions hold:
//   - the gap is wider than half of the range of all losses;
//   - the gap is wider than 50 standard deviations of the losses around the mean of their series and side, pooled over
//     all series;
//   - a series has losses on both sides, because a gap between two methods does not say that one of them failed;
//   - the loss above the gap is nearer to `chance` than to the loss below the gap. Infinity: chance is unknown.
// Losses that are infinite or near chance (near_chance_share) are left out.
std::optional<TrainingGap> training_gap(const std::vector<Outcomes>& losses, double chance);

// Whether a trial with this training loss trained. The loss is infinite if the trial diverged or was stopped as
// hopeless. False for a loss near chance, and for a loss above the gap.
bool has_trained(double loss, double chance, const std::optional<TrainingGap>& gap);

// The losses, with infinity for each trial that did not train.
std::vector<Outcomes> with_failures(std::vector<Outcomes> losses, double chance);

}  // namespace plumb::lab
