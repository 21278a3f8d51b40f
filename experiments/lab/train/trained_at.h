// When a network counts as trained, for studies that look for where networks train.
#pragma once

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/augment_options.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// When a network counts as trained.
struct TrainedAt {
  double share = 0.5;  // of chance, ln(classes), below which its training loss ends; a linear model of glyphs ends at
                       // 0.65, their hues at 0.6

  // --trained-at, in the section of the call. Refuses augmentation while nobody says it: the loss of what is augmented
  // ends elsewhere.
  void declare(Cli& cli, const AugmentOptions& augment);
  void measure(
      Trial& trial) const;  // "trained", 1 or 0, of a trial whose training has ended; nothing of one that diverged
};

}  // namespace plumb::lab
