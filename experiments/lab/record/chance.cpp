#include "experiments/lab/record/chance.h"

#include <fmt/format.h>

#include <cmath>

namespace plumb::lab {

Chance chance_of_classes(std::int64_t classes) {
  if (classes < 2) return {};
  const double loss = std::log(static_cast<double>(classes));
  return {loss, fmt::format("ln {} = {:.3f}", classes, loss)};
}

}  // namespace plumb::lab
