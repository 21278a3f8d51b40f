#include "experiments/lab/train/trained_at.h"

#include <cmath>

#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

void TrainedAt::declare(Cli& cli, std::function<bool()> augments) {
  cli.option("--trained-at", &share,
             "Share of the chance loss: a network counts as trained if its final training loss is below it, both above "
             "the entropy of smoothed or mixed labels")
      .above(0)
      .below(1);
  cli.rule([this, &cli, augments = std::move(augments)] {
    usage_check(cli.given("--trained-at") || !augments(),
                "augmentation raises the final training loss, also above the entropy of its labels, so the default "
                "--trained-at {:g} does not apply; give --trained-at, the share of the chance loss below which a "
                "network counts as trained",
                share);
  });
}

void TrainedAt::measure(Trial& trial) const {
  if (trial.has_diverged()) return;
  const DivergenceWatch& watch = trial.run_.watch;
  check(std::isfinite(watch.chance()),
        "[trained_at] expected a problem whose train_loss has a chance level, got none: the share of an unknown loss "
        "says nothing");
  const double loss = trial.recent_loss();  // waits for the last steps
  const double clean = clean_loss(loss, watch.recent_target_entropy(), watch.chance());
  trial.measure({{"trained", clean < share * watch.chance() ? 1.0 : 0.0}});
}

}  // namespace plumb::lab
