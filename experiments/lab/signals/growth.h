// Predicts the mean square of the residual stream in a freshly initialised network, from the growth law of the method.
#pragma once

#include <vector>

#include "nn/gates/method.h"

namespace plumb::lab {

// Predicts the mean square of the stream after each branch, in the order of the forward pass.
//   law    the growth law that the method states
//   norms  the norm placement of each branch; one entry per branch
//   input  mean square of the input of the first block
//   added  mean squares that the branches of the first block without post-norm add to the stream; one entry per branch
//          of a block
// After a branch with post-norm, the mean square is 1. Any other branch adds to the mean square of the stream, because
// the output of the branch is uncorrelated with the stream. The growth law decides how much a branch of block l
// (counted from 1) adds:
//   linear     `added` in every block
//   harmonic   in proportion to 1 / l, and `added` in the first block without post-norm
//   geometric  the same share of the stream as in the first block without post-norm
//   identity   nothing
// If the method states no growth law, the prediction is NaN.
std::vector<double> predicted_mean_square(nn::Growth law, const std::vector<nn::Norm>& norms, double input,
                                          const std::vector<double>& added);

}  // namespace plumb::lab
