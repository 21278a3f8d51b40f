#include "experiments/lab/record/measure.h"

#include "experiments/lab/record/chance.h"

namespace plumb::lab {

std::vector<Measure> measures_of_classification(std::int64_t classes) {
  const Chance loss = chance_of_classes(classes);
  const std::optional<double> nats = loss.known() ? std::optional(loss.loss) : std::nullopt,
                              share = loss.known() ? std::optional(1 / static_cast<double>(classes)) : std::nullopt;
  return {{.name = "train_loss", .title = "train loss", .chance = nats, .chance_text = loss.text},
          {.name = "val_loss", .title = "val loss", .chance = nats, .chance_text = loss.text},
          {.name = "val_accuracy",
           .title = "val accuracy",
           .better = Better::higher,
           .unit = Unit::fraction,
           .chance = share}};
}

}  // namespace plumb::lab
