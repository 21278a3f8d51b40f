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

Tensor Mlp::forward(const Tensor& x) const { return leave(fc2_, enter_gelu(fc1_, x, gelu_)); }

}  // namespace plumb::nn
