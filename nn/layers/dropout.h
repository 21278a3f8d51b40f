// Dropout (Srivastava et al. 2014) as a layer that acts in training mode only.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// In training, sets each element to 0 with probability p, and divides the other elements by 1 - p. In evaluation, the
// layer is the identity. The bounds of p are those of dropout().
class Dropout : public Layer {
 public:
  explicit Dropout(double p);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

}  // namespace plumb::nn
