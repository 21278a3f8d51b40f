// The stream that flows through a stack of residual blocks.
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// The axes of the stream: tokens [B, T, D], with the channels last, or images [B, D, H, W], with the channels second.
enum class Layout { tokens, images };

// The tensors that pass from block to block. The branches read x. A method can carry further tensors, such as
// ResiDual's second stream or the values of the first block. In a stream of tokens, every tensor is
// [B, T, ..], so that a model can slice tokens off.
struct Stream {
  Tensor x;  // [B, T, D], with hyper-connections [B, T, n, D]; images [B, D, H, W]
  Tensors carried = {};
};

}  // namespace plumb::nn
