#include "nn/layers/linear.h"

#include "autograd/ops.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

Linear::Linear(const LinearOptions& o) : Layer("Linear") {
  check(o.in > 0 && o.out > 0, "[linear] expected positive extents, got in {} and out {}", o.in, o.out);
  weight_ = parameter("weight", {o.out, o.in}, o.init, o.role);
  if (o.bias) bias_ = parameter("bias", {o.out}, o.bias_init, Role::bias);
}

namespace {

// Returns the parameters of the norm if the fused op can include the norm, that is, if the norm is a LayerNorm without
// hooks.
std::optional<NormParameters> fusible(const Layer* norm) {
  const auto* layer_norm = dynamic_cast<const LayerNorm*>(norm);
  if (!layer_norm || layer_norm->hooked()) return std::nullopt;
  return layer_norm->own_parameters();
}

// Casts y to bf16 if the fused op would have returned bf16.
Tensor narrowed(const Tensor& y, bool bf16_result) {
  return bf16_result && y.dtype() == DType::f32 && precision() == Precision::bf16 ? cast(y, DType::bf16) : y;
}

}  // namespace

Tensor Linear::after(const Layer* norm, const Tensor& x, bool bf16_result) const {
  const auto parameters = fusible(norm);
  const Tensor u = norm && !parameters ? (*norm)(x) : x;
  if (hooked()) return narrowed((*this)(parameters ? (*norm)(u) : u), bf16_result);
  const PathScope scope(path());
  return parameters ? norm_linear(u, *parameters, weight_, bias_, bf16_result) : linear(u, weight_, bias_, bf16_result);
}

Tensor Linear::gelu_after(const Layer* norm, const Tensor& x, Gelu form, bool bf16_result) const {
  const auto parameters = fusible(norm);
  const Tensor u = norm && !parameters ? (*norm)(x) : x;
  if (hooked()) return narrowed(gelu((*this)(parameters ? (*norm)(u) : u), form), bf16_result);
  const PathScope scope(path());
  return parameters ? norm_linear_gelu(u, *parameters, weight_, bias_, form, bf16_result)
                    : linear_gelu(u, weight_, bias_, form, bf16_result);
}

Tensor Linear::joined(const Tensor& skip, const Tensor& x, const Tensor& gate, const Tensor& row_scale) const {
  if (hooked()) return gated_residual(skip, (*this)(x), gate, row_scale);
  const PathScope scope(path());
  return linear_residual(skip, x, weight_, bias_, gate, row_scale);
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

}  // namespace plumb::nn
