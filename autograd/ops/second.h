// The backward passes of fused ops as ops of their own, for second derivatives: what a fused op's backward is when it
// is recorded. Each has a fused backward pass itself; derivatives of the third order go through primitives.
#pragma once

#include "autograd/tensor.h"
#include "core/backend.h"

namespace plumb::detail {

Tensor gelu_backward(Gelu form, const Tensor& dy, const Tensor& x);  // dy gelu'(x)
Tensor softmax_backward(const Tensor& dy, const Tensor& y);          // y (dy - sum(y dy)), over the last axis
Tensor gelu_slope_composed(const Tensor& x, Gelu form);              // gelu'(x)

struct LayerNormGradients {
  Tensor dx, dweight, dbias;
};
// mean and rstd [.., 1] are what layer_norm_forward made of x.
LayerNormGradients layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Array& mean,
                                       const Array& rstd, double eps);

}  // namespace plumb::detail
