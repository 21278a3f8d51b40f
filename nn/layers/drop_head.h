// DropHead (Zhou et al. 2020, "Scheduled DropHead"): drops whole heads of attention in training.
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// Returns the rate at training step 0 .. steps - 1. The rate falls linearly from `base` at the first step to 0 in the
// middle, and rises back to `base` at the last step (V-shaped). The position of the minimum is Plumb's choice. If
// `steps` is 1, the rate is `base`. Throws Error for a step out of bounds.
double drop_head_rate(double base, std::int64_t step, std::int64_t steps);

// Returns factors [batch, 1, heads, 1] for the outputs of heads [B, T, H, E]. Each (sample, head) is dropped with
// probability `rate`, which is in [0, 1). Dropped heads get the factor 0. The kept heads of a sample get the factor
// heads / (number of kept heads), so that the factors of a sample sum to the number of heads. If all heads of a sample
// would be dropped, the head with the largest draw is kept. A rate below 2^-17 drops no head. The draws depend on the
// seed, the step and the current module path. dtype and device are those of `like`. Throws Error for a rate, a batch or
// a number of heads out of bounds.
Tensor drop_head_scale(std::int64_t batch, std::int64_t heads, double rate, const Tensor& like);

}  // namespace plumb::nn
