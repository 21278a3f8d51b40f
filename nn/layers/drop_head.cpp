#include "nn/layers/drop_head.h"

#include <cmath>

#include "autograd/ops.h"
#include "core/backend.h"
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
  Array scale({batch, 1, heads, 1}, like.dtype(), like.device());
  kernels(scale).drop_head_scale(key, random.step, random.first_sample, drop_threshold(rate), scale);
  return Tensor(scale);
}

}  // namespace plumb::nn
