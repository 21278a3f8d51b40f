// The stream that flows through a stack of residual blocks.
#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// The tensors that pass from block to block. The branches read x. A method can carry further tensors, such as
// ResiDual's second stream or the values of the first block. Every tensor is [B, T, ..], so that a model can slice
// tokens off.
struct Stream {
  Tensor x;  // [B, T, D]; with hyper-connections [B, T, n, D]
  Tensors carried = {};
};

}  // namespace plumb::nn
