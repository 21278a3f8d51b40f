#include "nn/layers/mlp.h"

#include <cmath>

#include "autograd/ops.h"

namespace plumb::nn {

std::int64_t mlp_hidden(const char* op, double mlp_ratio, std::int64_t dim) {
  const double hidden = std::round(mlp_ratio * static_cast<double>(dim));
  check(1 <= hidden && hidden <= 0x1p40,
        "[{}] expected an mlp_ratio that gives MLPs of 1 to 2^40 hidden units at width {}, got {}", op, dim, mlp_ratio);
  return static_cast<std::int64_t>(hidden);
}

Mlp::Mlp(const MlpOptions& o)
    : Branch("Mlp", {.kind = "mlp", .activation = true}),
      activation_(o.activation),
      fc1_{this, "fc1", {.in = o.dim, .out = o.hidden, .init = o.init}},
      fc2_{this, "fc2", {.in = o.hidden, .out = o.dim, .init = o.init}} {
  if (o.drop == 0) return;
  drop1_ = {this, "drop1", make<Dropout>(o.drop)};
  drop2_ = {this, "drop2", make<Dropout>(o.drop)};
}

BranchChoice mlp(const MlpOptions& options) {
  return {"mlp", [options](const JunctionPlace& place) {
            MlpOptions o = options;
            o.dim = place.dim;
            o.init = place.init();
            return std::make_unique<Mlp>(o);
          }};
}

Tensor Mlp::forward(BranchCall& call) const {
  const Gelu form = activation_ == Activation::gelu_tanh ? Gelu::tanh : Gelu::erf;
  const Tensor h = activation_ == Activation::relu ? relu(call.enter(fc1_)) : call.enter(fc1_, form);
  return call.leave(fc2_, drop1_ ? (*drop1_)(h) : h, drop2_.get());
}

}  // namespace plumb::nn
