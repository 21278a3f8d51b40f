#include "core/random.h"

#include <numbers>

namespace plumb {

double normal_draw(std::uint64_t key, std::uint64_t element, std::uint32_t attempt) {
  const Draw d = element_draw(key, attempt, Purpose::init, element / 2);
  const std::size_t word = 2 * (element % 2);
  const double radius = std::sqrt(-2 * std::log(1 - uniform(d[word])));  // 1 - u is in (0, 1]
  return radius * std::cos(2 * std::numbers::pi * uniform(d[word + 1]));
}

void normal_draws(std::uint64_t key, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_draw(key, i);
}

}  // namespace plumb
