// Dropout (Srivastava et al. 2014) as a layer: drops while training, and nothing after eval().
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Zero with probability p, else x / (1 - p), per element; the identity in evaluation. p as dropout() takes it.
class Dropout : public Layer {
 public:
  explicit Dropout(double p);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

}  // namespace plumb::nn
