// The branch of a residual convolutional network.
#pragma once

#include "nn/layers/branch.h"
#include "nn/layers/conv2d.h"

namespace plumb::nn {

// Returns the choice of a branch for a junction, under the name "conv". The branch maps images [B, C, H, W] to
// conv2(relu(conv1(x))), of the same shape. Parameters: conv1.weight, conv1.bias, conv2.weight, conv2.bias. A norm
// between the convolutions is left to residual methods, as in pre-activation networks without a second norm. Throws
// Error for an even kernel, which would change the size of the images.
BranchChoice conv_branch(std::int64_t kernel = 3);

}  // namespace plumb::nn
