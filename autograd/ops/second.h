// The backward passes of fused ops as ops, for second derivatives: when a gradient is recorded, these ops are recorded.
// The backward passes of these ops are fused too; third derivatives go through primitives.
#pragma once

#include "autograd/tensor.h"
#include "core/backend.h"

namespace plumb::detail {

Tensor gelu_backward(Gelu form, const Tensor& dy, const Tensor& x);  // dy gelu'(x)
Tensor softmax_backward(const Tensor& dy, const Tensor& y);          // y (dy - sum(y dy)), over the last axis
Tensor gelu_slope_composed(const Tensor& x, Gelu form);              // gelu'(x)

// The results of layer_norm_backward().
struct LayerNormGradients {
  Tensor dx, dweight, dbias;
};
// The gradients of layer norm. mean and rstd [.., 1] are results of layer_norm_forward for x.
LayerNormGradients layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Array& mean,
                                       const Array& rstd, double eps);

}  // namespace plumb::detail
