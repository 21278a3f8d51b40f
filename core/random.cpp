// The random functions that are not constexpr.
#include "core/random.h"

#include <numbers>

#include "core/error.h"

namespace plumb {

std::uint32_t survivable_threshold(const char* op, const char* what, double p) {
  check(0 <= p && p < 1, "[{}] expected a {} in [0, 1), got {}", op, what, p);
  check(drop_threshold(p) < 65536, "[{}] expected a {} of at most 1 - 2^-16, got {}: draws have 16 bits", op, what, p);
  return drop_threshold(p);
}

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
