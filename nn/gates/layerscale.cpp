// x' = x + gamma1 * Attn(LN(x)), y = x' + gamma2 * FFN(LN(x')). The gate sits after the output projection, inside DropPath.
// Under Adam the first step moves every gamma by about the learning rate, whatever its start.
#include "nn/gates/layerscale.h"

namespace plumb::nn {

double layerscale_init(std::int64_t blocks) { return blocks <= 18 ? 0.1 : blocks <= 24 ? 1e-5 : 1e-6; }

LayerScale::LayerScale(std::int64_t dim, double init_value) {
  check(dim > 0, "[layer_scale] expected a positive width, got {}", dim);
  scale_ = parameter("gamma", {dim}, Init::constant(init_value), Role::gate);
}

LayerScale::LayerScale(const GateContext& context) : LayerScale(context.dim, layerscale_init(context.blocks)) {}

Tensor LayerScale::operator()(const Tensor& x) const {
  const PathScope scope(path());
  check(x.shape().rank() > 0 && x.dim(-1) == scale_.numel(), "[layer_scale] expected input [.., {}], got {}", scale_.numel(), x.shape());
  return x * scale_;
}

Method layerscale() {
  return {.norm = Norm::pre,
          .formula = "x + g * f(LN(x)), g [D] = eps by depth",
          .source = "Touvron et al. 2021, Going deeper with image transformers",
          .build = gate_per_branch<LayerScale>};
}

}  // namespace plumb::nn
