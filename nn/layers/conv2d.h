// A 2-d convolution as a layer.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Options of a Conv2d.
struct Conv2dOptions {
  std::int64_t in, out, kernel;  // input channels, output channels, side of the square filter in pixels
  std::int64_t stride = 1, padding = 0;
  bool bias = true;               // networks with batch norm after the convolution need no bias
  Init init = Init::he_normal();  // of the weight; the bias starts at 0
};

// Maps images [B, in, H, W] to [B, out, H', W'], H' = floor((H + 2 padding - kernel) / stride) + 1. Parameters: weight
// [out, in, kernel, kernel], bias [out]. The constructor throws Error for extents below 1.
class Conv2d : public Layer {
 public:
  explicit Conv2d(const Conv2dOptions& options);

  // The parameters (bias is undefined if there is none), and the declared init of the weight.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  Init& weight_init() { return own("weight").init; }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
