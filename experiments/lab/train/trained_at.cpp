#include "experiments/lab/train/trained_at.h"

#include <cmath>

namespace plumb::lab {

void TrainedAt::declare(Cli& cli, const AugmentOptions& augment) {
  cli.option("--trained-at", &share, "A network trains where its training loss ends below this share of chance")
      .above(0)
      .below(1);
  cli.rule([this, &cli, &augment] {
    usage_check(cli.given("--trained-at") || !augment.any(),
                "augmentation raises the loss at which training ends: give --trained-at with it, the share of chance "
                "that counts as trained (without: "
                "{:g})",
                share);
  });
}

void TrainedAt::measure(Trial& trial) const {
  if (trial.has_diverged()) return;
  trial.measure(
      {{"trained",
        trial.recent_loss() < share * std::log(static_cast<double>(trial.data().train.classes)) ? 1.0 : 0.0}});
}

}  // namespace plumb::lab
