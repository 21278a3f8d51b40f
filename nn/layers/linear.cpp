#include "nn/layers/linear.h"

#include "autograd/ops.h"

namespace plumb::nn {

Linear::Linear(const LinearOptions& o) : Layer("Linear") {
  check(o.in > 0 && o.out > 0, "[linear] expected positive extents, got in {} and out {}", o.in, o.out);
  weight_ = parameter("weight", {o.out, o.in}, o.init, Role::weight);
  if (o.bias) bias_ = parameter("bias", {o.out}, Init::constant(0), Role::bias);
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

}  // namespace plumb::nn
