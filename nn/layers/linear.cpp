#include "nn/layers/linear.h"

namespace plumb::nn {

Linear::Linear(const LinearOptions& o) : WeightLayer("Linear") {
  check(o.in > 0 && o.out > 0, "[linear] expected positive extents, got in {} and out {}", o.in, o.out);
  weight_ = parameter("weight", {o.out, o.in}, o.init, o.role);
  if (o.bias) bias_ = parameter("bias", {o.out}, o.bias_init, Role::bias);
}

Tensor Linear::rows(const Tensor& x, std::int64_t first, std::int64_t last) const {
  return compute_with_hooks(x, [&](const Tensor& u) {
    return linear(u, slice(weight_, 0, first, last), bias_.defined() ? slice(bias_, 0, first, last) : bias_);
  });
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

}  // namespace plumb::nn
