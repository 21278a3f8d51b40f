#include "nn/layers/linear.h"

#include "core/precision.h"

namespace plumb::nn {

Linear::Linear(const LinearOptions& o) : WeightLayer("Linear") {
  check(o.in > 0 && o.out > 0, "[linear] expected positive extents, got in {} and out {}", o.in, o.out);
  weight_ = parameter("weight", {o.out, o.in}, o.init, o.role);
  if (o.bias) bias_ = parameter("bias", {o.out}, o.bias_init, Role::bias);
}

Tensor Linear::operator()(const Tensor& x, const LinearFusion& with) const {
  if (!hooked()) {
    const PathScope scope(path());
    return linear(x, weight_, bias_, with);
  }
  const NormParameters& norm = with.norm;
  const Tensor f = (*this)(norm.weight.defined() ? layer_norm(x, norm.weight, norm.bias, norm.eps) : x);
  const Tensor y = with.gelu  ? gelu(f, *with.gelu)
                   : with.sum ? gated_residual(with.sum->skip, f, with.sum->gate, with.sum->row_scale)
                              : f;
  const bool narrow = with.result == ResultDType::product && y.dtype() == DType::f32 && precision() == Precision::bf16;
  return narrow ? cast(y, DType::bf16) : y;
}

Tensor Linear::rows(const Tensor& x, std::int64_t first, std::int64_t last) const {
  return compute_with_hooks(x, [&](const Tensor& u) {
    return linear(u, slice(weight_, 0, first, last), bias_.defined() ? slice(bias_, 0, first, last) : bias_);
  });
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

}  // namespace plumb::nn
