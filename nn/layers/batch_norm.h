// Batch normalisation of images.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Batch norm (Ioffe, Szegedy 2015) of images [B, channels, H, W]: weight [channels] has the initial value 1, bias
// [channels] the initial value 0. In training, the layer uses the statistics of the batch, and each forward pass moves
// running_mean and running_var 0.1 of the way towards the statistics of the batch. A pass that checkpoint() repeats
// does not move running_mean and running_var again. The variance in running_var is the unbiased variance, divided by B
// H W - 1. In evaluation, the layer uses running_mean and running_var. These rules are those of PyTorch.
//
// A training pass changes the running statistics, so only one thread may train a model with batch norm: in training,
// forward() throws Error if another thread that still runs has trained the model. In evaluation, any number of threads
// may use the layer.
//
// running_mean [channels], with initial value 0, and running_var [channels], with initial value 1, are parameters of
// Role::statistic, so that weight files contain both. Parameters of this role are always frozen; parameter_count()
// includes their elements.
class BatchNorm2d : public Layer {
 public:
  // Throws Error for fewer than one channel, and for an eps below least_eps (ops.h).
  explicit BatchNorm2d(std::int64_t channels, double eps = 1e-5);

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  struct Trainer;  // the thread that trains the layer
  double eps_;
  Tensor weight_, bias_, running_mean_, running_var_;
  const std::shared_ptr<Trainer> trainer_;
};

}  // namespace plumb::nn
