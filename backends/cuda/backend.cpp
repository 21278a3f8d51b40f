#include "core/backend.h"

#include "backends/cuda/kernels.h"
#include "backends/cuda/runtime.h"
#include "backends/cuda/through_host.h"

namespace plumb {
namespace {

constexpr Kernels table_of_kernels() {
  // What the device does not have yet goes through the host ..
  Kernels table{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = cuda::through_host<&Kernels::name>,
#include "core/kernels.def"
  };
  // .. and what it has.
  table.fill = cuda::fill;
  table.cast = cuda::cast;
  table.unary = cuda::unary;
  table.binary = cuda::binary;
  table.where = cuda::where;
  table.broadcast = cuda::broadcast;
  table.permute = cuda::permute;
  table.slice = cuda::slice;
  table.assign_slice = cuda::assign_slice;
  table.gather = cuda::gather;
  table.scatter_add = cuda::scatter_add;
  table.dropout = cuda::dropout;
  table.reduce = cuda::reduce;
  table.gelu_forward = cuda::gelu_forward;
  table.softmax_forward = cuda::softmax_forward;
  table.softmax_backward = cuda::softmax_backward;
  table.log_softmax_forward = cuda::log_softmax_forward;
  table.log_softmax_backward = cuda::log_softmax_backward;
  table.layer_norm_forward = cuda::layer_norm_forward;
  table.layer_norm_backward = cuda::layer_norm_backward;
  table.rms_norm_forward = cuda::rms_norm_forward;
  table.rms_norm_backward = cuda::rms_norm_backward;
  table.dyt_forward = cuda::dyt_forward;
  table.dyt_backward = cuda::dyt_backward;
  table.cross_entropy_forward = cuda::cross_entropy_forward;
  table.cross_entropy_backward = cuda::cross_entropy_backward;
  table.gated_residual_forward = cuda::gated_residual_forward;
  table.gated_residual_backward = cuda::gated_residual_backward;
  table.matmul = cuda::matmul;
  table.linear_forward = cuda::linear_forward;
  table.linear_backward = cuda::linear_backward;
  table.attention_forward = cuda::attention_forward;
  table.attention_backward = cuda::attention_backward;
  table.adamw = cuda::adamw;
  table.sgd = cuda::sgd;
  table.adagrad = cuda::adagrad;
  table.sum_of_squares = cuda::sum_of_squares;
  return table;
}

}  // namespace

const Kernels& cuda_kernels() {
  cuda::stream();  // throws where there is no device
  static constexpr Kernels table = table_of_kernels();
  return table;
}

}  // namespace plumb
