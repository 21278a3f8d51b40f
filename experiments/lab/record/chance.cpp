#include "experiments/lab/record/chance.h"

#include <fmt/format.h>

#include <cmath>

namespace plumb::lab {

Chance chance_of_classes(std::int64_t classes) {
  if (classes < 2) return {};
  const double loss = std::log(static_cast<double>(classes));
  return {loss, fmt::format("ln {} = {:.3f}", classes, loss)};
}

double clean_loss(double loss, double target_entropy, double chance) {
  if (target_entropy == 0 || std::isnan(loss)) return loss;
  if (!std::isfinite(chance)) return loss - target_entropy;
  if (target_entropy >= chance) return std::numeric_limits<double>::infinity();
  return (loss - target_entropy) * chance / (chance - target_entropy);
}

}  // namespace plumb::lab
