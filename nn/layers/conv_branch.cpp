#include "nn/layers/conv_branch.h"

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

Conv2dOptions convolution(const ConvBranchOptions& o) {
  check(o.kernel % 2 == 1, "[conv_branch] expected an odd kernel, so that the size of the image stays, got {}",
        o.kernel);
  return {.in = o.channels, .out = o.channels, .kernel = o.kernel, .padding = o.kernel / 2, .init = o.init};
}

}  // namespace

ConvBranch::ConvBranch(const ConvBranchOptions& o)
    : Branch("ConvBranch", {.kind = "conv", .activation = true}),
      conv1_(this, "conv1", convolution(o)),
      conv2_(this, "conv2", convolution(o)) {}

Tensor ConvBranch::forward(BranchCall& call) const { return call.leave(conv2_, relu(call.enter(conv1_))); }

BranchChoice conv_branch(const ConvBranchOptions& options) {
  return {"conv", [options](const JunctionPlace& place) {
            ConvBranchOptions o = options;
            o.channels = place.dim;
            return std::make_unique<ConvBranch>(o);
          }};
}

}  // namespace plumb::nn
