#include "experiments/lab/record/data_facts.h"

#include "core/error.h"

namespace plumb::lab {

Chance DataFacts::chance() const {
  const Measure* loss = find_measure(measures, "train_loss");
  if (!loss || !loss->chance) return {};
  return {*loss->chance, loss->chance_text.empty() ? fmt::format("{:.4g}", *loss->chance) : loss->chance_text};
}

const ImageSet& DataFacts::image_sizes() const {
  check(images.has_value(), "[data] expected a problem with images, got {}", name);
  return images->sizes;
}

}  // namespace plumb::lab
