#pragma once

#include "nn/stack.h"

namespace plumb::nn {

// Images [B, C, H, W] -> logits [B, classes] through a stack of residual blocks: what trainers and probes work on.
class Classifier : public Layer {
 public:
  using Layer::Layer;
  virtual Stack& stack() = 0;
  virtual std::uint64_t seed() const = 0;  // of its initial values
};

}  // namespace plumb::nn
