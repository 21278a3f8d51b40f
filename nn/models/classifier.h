// The common base class of image classifiers.
#pragma once

#include "nn/blocks/stack.h"

namespace plumb::nn {

// Maps images [B, C, H, W] to logits [B, classes] through a stack of residual blocks. Trainers and signal probes use
// this class.
class Classifier : public Layer {
 public:
  using Layer::Layer;
  // Returns the stack of residual blocks.
  virtual Stack& stack() = 0;
};

}  // namespace plumb::nn
