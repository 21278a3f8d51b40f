#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Batch norm (Ioffe, Szegedy 2015) of images [B, channels, H, W]: weight [channels] starts at 1, bias [channels] at 0.
// In training it uses the statistics of the batch and moves running_mean and running_var towards them, 0.1 of the way
// in each forward pass (not again when checkpoint() repeats one); the variance there is the unbiased one, divided by B
// H W - 1. In evaluation it uses those. As PyTorch's.
//
// running_mean [channels] (starts at 0) and running_var [channels] (at 1) are parameters that nothing trains, so that
// they are saved with the weights: Role::statistic, frozen for ever. They are counted by parameter_count().
class BatchNorm2d : public Layer {
 public:
  // At least one channel, eps of at least least_eps (ops.h).
  explicit BatchNorm2d(std::int64_t channels, double eps = 1e-5);

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  double eps_;
  Tensor weight_, bias_, running_mean_, running_var_;
};

}  // namespace plumb::nn
