// A 2-d convolution as a layer.
#pragma once

#include "nn/layers/weight_layer.h"

namespace plumb::nn {

// Options of a Conv2d.
struct Conv2dOptions {
  std::int64_t in, out,
      kernel;  // input channels (in), output channels (out), side of the square filter in pixels (kernel)
  std::int64_t stride = 1, padding = 0;
  bool bias = true;               // whether the layer has a bias; not needed if batch norm follows
  Init init = Init::he_normal();  // the init of the weight; the bias has the initial value 0
};

// Maps images [B, in, H, W] to [B, out, H', W'], H' = floor((H + 2 padding - kernel) / stride) + 1. Parameters: weight
// [out, in, kernel, kernel], bias [out]. The constructor throws Error for extents below 1.
class Conv2d : public WeightLayer {
 public:
  using Options = Conv2dOptions;  // the options of the constructor, for nn::Child
  explicit Conv2d(const Conv2dOptions& options);

  // The parameters. bias() is undefined if the layer has no bias.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
