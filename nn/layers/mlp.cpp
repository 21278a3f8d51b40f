#include "nn/layers/mlp.h"

#include "autograd/ops.h"

namespace plumb::nn {

Mlp::Mlp(const MlpOptions& o)
    : Branch("Mlp"), gelu_(o.gelu), fc1_({.in = o.dim, .out = o.hidden, .init = o.init}), fc2_({.in = o.hidden, .out = o.dim, .init = o.init}) {
  child("fc1", fc1_);
  child("fc2", fc2_);
}

void Mlp::scale_value_path(double factor) {
  for (Linear* layer : {&fc1_, &fc2_}) layer->scale_init(factor);
}

Tensor Mlp::forward(const Tensor& x) const {
  if (!inside_ && !fc1_.hooked()) return fc2_(linear_gelu(x, fc1_.weight(), fc1_.bias(), gelu_));
  static const Inside nothing;
  const Inside& inside = inside_ ? *inside_ : nothing;
  return fc2_(inside.hidden(gelu(inside.projected(fc1_(inside.input(x))), gelu_)));
}

}  // namespace plumb::nn
