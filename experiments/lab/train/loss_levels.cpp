#include "experiments/lab/train/loss_levels.h"

#include <fmt/format.h>

namespace plumb::lab {

std::string steps_to_name(double level) { return fmt::format("{}{}", steps_to_prefix, level); }

void LossLevels::see(std::int64_t step, const DivergenceWatch& watch) {
  if (watch.recent().size() < DivergenceWatch::patience) return;
  for (const double level : levels_)
    if (watch.recent_loss() < level) reached_.try_emplace(level, step + 1);
}

Values LossLevels::values(std::int64_t steps) const {
  Values values;
  for (const double level : levels_) {
    const auto found = reached_.find(level);
    values.emplace_back(steps_to_name(level), static_cast<double>(found == reached_.end() ? steps : found->second));
  }
  return values;
}

}  // namespace plumb::lab
