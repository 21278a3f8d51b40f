// Pooling of images as layers.
#pragma once

#include "autograd/ops.h"
#include "nn/module.h"

namespace plumb::nn {

// Maps images [B, C, H, W] to the largest pixel of each window, [B, C, H', W'] (max_pool2d()).
class MaxPool2d : public Layer {
 public:
  using Options = Pool2dOptions;  // the options of the constructor, for nn::Child
  explicit MaxPool2d(const Pool2dOptions& options) : Layer("MaxPool2d"), options_(options) {}

 protected:
  Tensor forward(const Tensor& images) const override { return max_pool2d(images, options_); }

 private:
  Pool2dOptions options_;
};

// Maps images [B, C, H, W] to the mean of each window, [B, C, H', W'] (avg_pool2d()).
class AvgPool2d : public Layer {
 public:
  using Options = Pool2dOptions;  // the options of the constructor, for nn::Child
  explicit AvgPool2d(const Pool2dOptions& options) : Layer("AvgPool2d"), options_(options) {}

 protected:
  Tensor forward(const Tensor& images) const override { return avg_pool2d(images, options_); }

 private:
  Pool2dOptions options_;
};

// Maps images [B, C, H, W] to the mean of each channel, [B, C]. Throws Error for inputs of another rank.
class GlobalAvgPool2d : public Layer {
 public:
  GlobalAvgPool2d() : Layer("GlobalAvgPool2d") {}

 protected:
  Tensor forward(const Tensor& images) const override {
    check(images.shape().rank() == 4, "[global_avg_pool2d] expected images [B, C, H, W], got {}", images.shape());
    return mean(images, {2, 3});
  }
};

}  // namespace plumb::nn
