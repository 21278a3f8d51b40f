// A layer with a weight: Linear or Conv2d. Residual methods change the initial weights of such layers.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Base class of layers that have a parameter "weight" with a declared init.
class WeightLayer : public Layer {
 public:
  using Layer::Layer;
  // The declared init of the weight. scale_init() multiplies this init by a factor.
  Init& weight_init() { return own("weight").init; }
  void scale_init(double factor) { weight_init() = weight_init().scaled(factor); }
};

}  // namespace plumb::nn
