#include "nn/layers/conv_branch.h"

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

class ConvBranch : public Branch {
 public:
  explicit ConvBranch(const Conv2dOptions& convolution)
      : Branch("ConvBranch", {.kind = "conv", .activation = true}),
        conv1_(this, "conv1", convolution),
        conv2_(this, "conv2", convolution) {}

 protected:
  Tensor forward(BranchCall& call) const override { return call.leave(conv2_, relu(call.enter(conv1_))); }

 private:
  Child<Conv2d> conv1_, conv2_;
};

}  // namespace

BranchChoice conv_branch(std::int64_t kernel) {
  check(kernel % 2 == 1, "[conv_branch] expected an odd kernel, so that the size of the image stays, got {}", kernel);
  return {"conv", [kernel](const JunctionPlace& place) {
            return std::make_unique<ConvBranch>(Conv2dOptions{
                .in = place.dim, .out = place.dim, .kernel = kernel, .padding = kernel / 2, .init = Init::he_normal()});
          }};
}

}  // namespace plumb::nn
