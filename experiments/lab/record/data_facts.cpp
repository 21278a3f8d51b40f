#include "experiments/lab/record/data_facts.h"

#include "core/error.h"

namespace plumb::lab {

Chance DataFacts::chance() const {
  const Measure* loss = find_measure(measures, "train_loss");
  if (!loss || !loss->chance) return {};
  return {*loss->chance, loss->chance_text.empty() ? fmt::format("{:.4g}", *loss->chance) : loss->chance_text};
}

}  // namespace plumb::lab
