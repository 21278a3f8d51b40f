#include "nn/layers/drop_head.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "core/random.h"
#include "core/scope.h"

namespace plumb::nn {

double drop_head_rate(double base, std::int64_t step, std::int64_t steps) {
  check(0 <= step && step < steps, "[drop_head] expected a step in 0..{}, got {}", steps - 1, step);
  return steps == 1 ? base : base * std::abs(1 - 2 * static_cast<double>(step) / static_cast<double>(steps - 1));
}

Tensor drop_head_scale(std::int64_t batch, std::int64_t heads, double rate, const Tensor& like) {
  check(0 <= rate && rate < 1, "[drop_head] expected a rate in [0, 1), got {}", rate);
  check(batch >= 0 && heads > 0, "[drop_head] expected at least 0 samples and one head, got {} and {}", batch, heads);
  const RandomState& random = drop_threshold(rate) ? random_state_for("drop_head") : random_state();
  const std::uint64_t key = random_key(random.seed, current_path() ? *current_path() : "");
  std::vector<double> scale;
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<std::uint32_t> draws;
    for (std::int64_t h = 0; h < heads; ++h)
      draws.push_back(draw16(philox({random.step, static_cast<std::uint32_t>(Purpose::drop_head), random.first_sample + static_cast<std::uint32_t>(b),
                                     static_cast<std::uint32_t>(h / 8)},
                                    key),
                             static_cast<int>(h % 8)));
    const std::uint32_t keep_from = std::min(drop_threshold(rate), *std::ranges::max_element(draws));
    const auto kept = static_cast<double>(std::ranges::count_if(draws, [&](std::uint32_t d) { return d >= keep_from; }));
    for (std::uint32_t d : draws) scale.push_back(d >= keep_from ? static_cast<double>(heads) / kept : 0);
  }
  return tensor(scale, {batch, 1, heads, 1}, {like.dtype(), like.device()});
}

}  // namespace plumb::nn
