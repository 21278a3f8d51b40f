// Conversion between [B, T, D] and heads [B, H, T, D / H].
#pragma once

#include "autograd/ops.h"

namespace plumb::nn {

// Maps [B, T, D] to [B, heads, T, D / heads].
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// Maps [B, H, T, E] to [B, T, H E].
inline Tensor merge_heads(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

}  // namespace plumb::nn
