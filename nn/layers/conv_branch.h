// The branch of a residual convolutional network.
#pragma once

#include "nn/layers/branch.h"
#include "nn/layers/conv2d.h"

namespace plumb::nn {

// Options of a ConvBranch.
struct ConvBranchOptions {
  std::int64_t channels = 0;
  std::int64_t kernel = 3;  // odd, so that the size of the image stays
  Init init = Init::he_normal();
};

// Maps images [B, C, H, W] to conv2(relu(conv1(x))), of the same shape. Parameters: conv1.weight, conv1.bias,
// conv2.weight, conv2.bias. A norm between the convolutions is left to residual methods, as in pre-activation networks
// without a second norm. The constructor throws Error for an even kernel.
class ConvBranch : public Branch {
 public:
  using Options = ConvBranchOptions;  // the options of the constructor, for nn::Child
  explicit ConvBranch(const ConvBranchOptions& options);

 protected:
  Tensor forward(BranchCall& call) const override;

 private:
  Child<Conv2d> conv1_, conv2_;
};

// Returns the choice of a ConvBranch for a junction, under the name "conv". The block sets the channels.
BranchChoice conv_branch(const ConvBranchOptions& options = {});

}  // namespace plumb::nn
