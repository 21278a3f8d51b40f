// How the mean square of the residual stream should grow over a freshly initialised network, by the law that its method
// states.
#pragma once

#include <array>
#include <vector>

#include "nn/gates/gate.h"

namespace plumb::lab {

// The mean square of the stream after each branch (attention and MLP of each block, in order), predicted.
//   law    what the method says of itself
//   norms  where the norm of each branch's block sits, one entry a branch
//   input  mean square of what enters the first block
//   added  mean square of what the two branches of the first block that is not post-norm add to the stream
// A post-norm branch leaves 1. The others add to what is there, as uncorrelated signals do: `added` again (linear),
// added / l in the l-th block (harmonic), the same share of what they meet as in the first block (geometric), or
// nothing (identity). NaN where no law is stated.
std::vector<double> predicted_mean_square(nn::Growth law, const std::vector<nn::Norm>& norms, double input,
                                          const std::array<double, 2>& added);

}  // namespace plumb::lab
