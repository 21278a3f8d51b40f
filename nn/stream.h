// The stream that flows through a stack of residual blocks.
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// The tensors that pass from block to block: x, which the branches read, and further tensors that a method carries
// along (ResiDual's second stream, the values of the first block). Every tensor is [B, T, ..], so that a model can
// slice tokens off.
struct Stream {
  Tensor x;  // [B, T, D]; hyper-connections: [B, T, n, D]
  Tensors carried = {};
};

}  // namespace plumb::nn
