#pragma once

#include "nn/stack.h"

namespace plumb::nn {

// Images [B, C, H, W] -> logits [B, classes] through a stack of residual blocks: what trainers and probes work on.
class Classifier : public Layer {
 public:
  using Layer::Layer;
  virtual Stack& stack() = 0;
};

}  // namespace plumb::nn
