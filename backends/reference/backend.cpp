#include "backends/reference/kernels.h"

namespace plumb {

const Kernels& reference_kernels() {
  using namespace reference;
  static constexpr Kernels table{
      .fill = fill,
      .cast = cast,
      .unary = unary,
      .binary = binary,
      .where = where,
      .broadcast = broadcast,
      .reduce = reduce,
      .matmul = matmul,
      .permute = permute,
      .slice = slice,
      .assign_slice = assign_slice,
      .gather = gather,
      .scatter_add = scatter_add,
      .linear_forward = linear_forward,
      .linear_backward = linear_backward,
      .conv2d_forward = conv2d_forward,
      .conv2d_backward = conv2d_backward,
      .gelu_forward = gelu_forward,
      .softmax_forward = softmax_forward,
      .softmax_backward = softmax_backward,
      .log_softmax_forward = log_softmax_forward,
      .log_softmax_backward = log_softmax_backward,
      .layer_norm_forward = layer_norm_forward,
      .layer_norm_backward = layer_norm_backward,
      .rms_norm_forward = rms_norm_forward,
      .rms_norm_backward = rms_norm_backward,
      .dyt_forward = dyt_forward,
      .dyt_backward = dyt_backward,
      .attention_forward = attention_forward,
      .attention_backward = attention_backward,
      .cross_entropy_forward = cross_entropy_forward,
      .cross_entropy_backward = cross_entropy_backward,
      .dropout = dropout,
      .gated_residual_forward = gated_residual_forward,
      .gated_residual_backward = gated_residual_backward,
      .adamw = adamw,
      .sgd = sgd,
      .adagrad = adagrad,
      .sum_of_squares = sum_of_squares,
  };
  return table;
}

}  // namespace plumb
