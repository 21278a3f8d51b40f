// The rule that decides whether a network counts as trained, for studies that search for trainable networks.
#pragma once

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/augment_options.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// A network counts as trained if its final training loss is below a share of the chance loss.
struct TrainedAt {
  // The share of the chance loss, ln(classes). A linear model reaches 0.65 on glyphs and 0.6 on their hues.
  double share = 0.5;

  // Declares the option --trained-at. If augmentation is used, the option must be given, because augmentation changes
  // the final training loss.
  void declare(Cli& cli, const AugmentOptions& augment);
  // Measures "trained" (1 or 0) for a trial whose training has ended. Measures nothing if the trial has diverged.
  void measure(Trial& trial) const;
};

}  // namespace plumb::lab
