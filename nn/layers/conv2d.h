#pragma once

#include "nn/module.h"

namespace plumb::nn {

struct Conv2dOptions {
  std::int64_t in, out, kernel;  // channels, channels, extent of the square filter in pixels
  std::int64_t stride = 1, padding = 0;
  bool bias = true;               // networks with batch norm after it leave it out
  Init init = Init::he_normal();  // of the weight; the bias starts at 0
};

// Images [B, in, H, W] -> [B, out, H', W'], H' = floor((H + 2 padding - kernel) / stride) + 1; weight [out, in, kernel,
// kernel], bias [out].
class Conv2d : public Layer {
 public:
  explicit Conv2d(const Conv2dOptions& options);

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined without one
  Init& weight_init() { return own("weight").init; }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
