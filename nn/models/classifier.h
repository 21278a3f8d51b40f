// The common base class of image classifiers.
#pragma once

#include "nn/blocks/stack.h"
#include "nn/layers/attention.h"

namespace plumb::nn {

// Maps images [B, C, H, W] to logits [B, classes] through a stack of residual blocks. Trainers and signal probes use
// this class.
class Classifier : public Layer {
 public:
  using Layer::Layer;
  // Returns the stack of residual blocks.
  virtual Stack& stack() = 0;
};

// Returns the options of self-attention between the patches of a model.
template <class ModelOptions>
AttentionOptions attention_of(const ModelOptions& o) {
  return {.heads = o.heads,
          .drop_key = o.drop_key,
          .grid = {o.image / o.patch, o.image / o.patch},
          .dropout = o.attention_dropout,
          .drop_head = o.drop_head};
}

}  // namespace plumb::nn
