#pragma once

#include "autograd/tensor.h"

namespace plumb::nn {

// What flows through a stack of blocks: x, which branches read, and what a method carries beside it (ResiDual's second
// stream, the first block's values). All of it is [B, T, ..]: a model may go on with some of the tokens.
struct Stream {
  Tensor x;  // [B, T, D]; hyper-connections: [B, T, n, D]
  Tensors carried = {};
};

}  // namespace plumb::nn
