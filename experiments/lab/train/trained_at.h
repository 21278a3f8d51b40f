// The rule that decides whether a network counts as trained. Studies that search for trainable networks use this rule.
#pragma once

#include <functional>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// A network counts as trained if its final training loss is below a share of the chance loss. Both losses are measured
// from the entropy of the targets (clean_loss in record/chance.h).
struct TrainedAt {
  // The share of the chance loss. A linear model reaches a share of 0.65 on glyphs, and a share of 0.6 on the hues of
  // glyphs.
  double share = 0.5;

  // Declares the option --trained-at. If augments() returns true, the user must give the option, because augmentation
  // changes the final training loss.
  void declare(Cli& cli, std::function<bool()> augments);
  // Records the value "trained" (1 or 0) of a trial whose training has ended. If the trial has diverged, no value is
  // recorded.
  void measure(Trial& trial) const;
};

}  // namespace plumb::lab
