// Batch normalisation of images.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Batch norm (Ioffe, Szegedy 2015) of images [B, channels, H, W]: weight [channels] starts at 1, bias [channels] at 0.
// In training it uses the statistics of the batch, and each forward pass moves running_mean and running_var 0.1 of the
// way towards them. A pass that checkpoint() repeats does not move them again. The variance in running_var is the
// unbiased one, divided by B H W - 1. In evaluation the layer uses running_mean and running_var. All this is as in
// PyTorch.
//
// running_mean [channels] (starts at 0) and running_var [channels] (starts at 1) are parameters of Role::statistic, so
// that they are saved with the weights. They are always frozen, and parameter_count() counts them.
class BatchNorm2d : public Layer {
 public:
  // Throws Error unless there is at least one channel, and eps is at least least_eps (ops.h).
  explicit BatchNorm2d(std::int64_t channels, double eps = 1e-5);

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  double eps_;
  Tensor weight_, bias_, running_mean_, running_var_;
};

}  // namespace plumb::nn
