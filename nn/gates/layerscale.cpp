// LayerScale (Touvron et al. 2021, CaiT): x' = x + gamma1 * Attn(LN(x)), y = x' + gamma2 * FFN(LN(x')), gamma [D] = eps
// by depth in blocks N. The gate sits after the output projection, inside DropPath. timm's class default is 1e-5,
// DeiT's 1e-4; the authors keep gamma from decaying through a rule for 1-D parameters only, here its role does.
#include "nn/gates/layerscale.h"

#include <cmath>

#include "nn/gates/methods.h"

namespace plumb::nn {

double layerscale_init(std::int64_t blocks) { return blocks <= 18 ? 0.1 : blocks <= 24 ? 1e-5 : 1e-6; }

std::string layerscale_init_source(std::int64_t blocks) {
  const bool between = (18 < blocks && blocks < 24) || (24 < blocks && blocks < 36);
  return std::string(between ? "ours between the published depths; " : "") +
         "Touvron et al. 2021: 0.1 up to 18 blocks, 1e-5 for 24, 1e-6 deeper";
}

LayerScale::LayerScale(std::int64_t dim, double init_value) : ScaleGate({}, "LayerScale") {
  check(dim > 0, "[layer_scale] expected a positive width, got {}", dim);
  check(std::isfinite(init_value), "[layer_scale] expected a finite initial value, got {}", init_value);
  scale_ = parameter("gamma", {dim}, Init::constant(init_value), Role::gate);
}

Tensor LayerScale::operator()(const Tensor& x) const {
  const PathScope scope(path());
  check(x.shape().rank() > 0 && x.dim(-1) == scale_.numel(), "[layer_scale] expected input [.., {}], got {}",
        scale_.numel(), x.shape());
  return x * scale_;
}

Method methods::layerscale(std::optional<double> init) {
  return Method{
      .name = "layerscale",
      .norm = Norm::pre,
      .paper = cait_recipe(),
      .formula = "x + g * f(LN(x)), g [D] = eps by depth",
      .source = "Touvron et al. 2021, Going deeper with image transformers",
      .counts = "N blocks (eps)",
      .use = "The default for deep vision transformers: trains at depths where pre-norm stops.",
      .pitfalls =
          "Keep gates and stream in fp32: x + 1e-6 f is x in bf16. Under Adam the first step moves every gamma by "
          "about the learning "
          "rate, whatever its start, so that eps matters only with a warm-up from near 0.",
      .constants = {{.name = "init",
                     .affects = Affects::start,
                     .meaning = "every gamma at the start; by depth: 0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 deeper"}},
      .build =
          [](const GateContext& c) {
            return two_gates<LayerScale>(c.dim, c.constant("init", layerscale_init(c.blocks)));
          }}
      .with({{"init", init}});
}

}  // namespace plumb::nn
