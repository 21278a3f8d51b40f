// DropHead (Zhou et al. 2020, "Scheduled DropHead"): drops whole heads of attention while training.
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// The rate of training step 0 ... steps - 1: V-shaped, from `base` in the first step over 0 halfway back to `base` in
// the last one. Where the V turns is our convention. A training of one step takes `base`.
double drop_head_rate(double base, std::int64_t step, std::int64_t steps);

// Factors [batch, 1, heads, 1] of the heads' outputs [B, T, H, E]: 0 with probability `rate` in [0, 1) per (sample,
// head), else heads / kept heads of the sample, so that their sum is that of ones. A sample that lost all heads keeps
// the one of the largest draw. A rate below 2^-17 drops nothing. An empty batch has no factors. Draws depend on seed,
// step and the open module path. dtype and device are like's.
Tensor drop_head_scale(std::int64_t batch, std::int64_t heads, double rate, const Tensor& like);

}  // namespace plumb::nn
