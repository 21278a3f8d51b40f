// Predicts the mean square of the residual stream in a freshly initialised network, from the growth law of its method.
#pragma once

#include <array>
#include <vector>

#include "nn/gates/gate.h"

namespace plumb::lab {

// Predicts the mean square of the stream after each branch (attention and MLP of each block, in order).
//   law    the growth law that the method states
//   norms  the norm placement of each branch; one entry per branch
//   input  mean square of the input of the first block
//   added  mean squares that the two branches of the first block without post-norm add to the stream
// After a post-norm branch the mean square is 1. Other branches add to the mean square of the stream, because their
// output is uncorrelated with it:
//   linear     `added` in every block
//   harmonic   added / l in the l-th block
//   geometric  the same share of the stream as in the first block
//   identity   nothing
// The prediction is NaN if the method states no law.
std::vector<double> predicted_mean_square(nn::Growth law, const std::vector<nn::Norm>& norms, double input,
                                          const std::array<double, 2>& added);

}  // namespace plumb::lab
