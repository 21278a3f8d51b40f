// LayerScale (Touvron et al. 2021, CaiT): x' = x + gamma1 * Attn(LN(x)), y = x' + gamma2 * FFN(LN(x')). Every element
// of gamma [D] has the initial value eps, which depends on the number of blocks N. The gate is applied after the output
// projection and inside DropPath. The default eps of timm's class is 1e-5; the default of DeiT is 1e-4. Weight decay
// does not apply to gamma: the authors exclude all 1-D parameters from weight decay; in Plumb, Role::gate excludes
// gamma.
#include "nn/gates/layerscale.h"

#include <cmath>

#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

namespace plumb::nn {

double layerscale_init(std::int64_t blocks) { return blocks <= 18 ? 0.1 : blocks <= 24 ? 1e-5 : 1e-6; }

std::string layerscale_init_source(std::int64_t blocks) {
  const bool between = (18 < blocks && blocks < 24) || (24 < blocks && blocks < 36);
  return std::string(between ? "our value between the published depths; " : "") +
         "Touvron et al. 2021: 0.1 up to 18 blocks, 1e-5 for 24, 1e-6 deeper";
}

LayerScale::LayerScale(std::int64_t dim, double init_value, Layout layout) : ScaleGate({}, "LayerScale", layout) {
  check(dim > 0, "[layer_scale] expected a positive width, got {}", dim);
  check(std::isfinite(init_value), "[layer_scale] expected a finite initial value, got {}", init_value);
  scale_ = parameter("gamma", {dim}, Init::constant(init_value), Role::gate);
}

Tensor LayerScale::operator()(const Tensor& x) const {
  const PathScope scope(path());
  if (layout_ == Layout::images)
    check(x.shape().rank() == 4 && x.dim(1) == scale_.numel(), "[layer_scale] expected input [B, {}, H, W], got {}",
          scale_.numel(), x.shape());
  else
    check(x.shape().rank() > 0 && x.dim(-1) == scale_.numel(), "[layer_scale] expected input [.., {}], got {}",
          scale_.numel(), x.shape());
  return x * scale();
}

Method methods::layerscale(std::optional<double> init) {
  return Method{
      .name = "layerscale",
      .norm = Norm::pre,
      .paper = cait_recipe(),
      .formula = "x + g * f(LN(x)), g [D] = eps by depth",
      .source = "Touvron et al. 2021, Going deeper with image transformers",
      .counts = "N blocks (eps)",
      .use =
          "For deep vision transformers, at a cost of 2D parameters per block. Touvron et al. (CaiT, table 1) report "
          "for DeiT on ImageNet that LayerScale is better at 24 and 36 blocks than pre-norm and the other methods of "
          "the table. In language models, Sun et al. 2025 report a higher perplexity than that of pre-norm at 130M "
          "parameters: 27.93 against 26.73 (quoted from a secondary text).",
      .pitfalls =
          "Keep gates and stream in fp32: in bf16, x + 1e-6 f is rounded to x. With Adam, the first step moves every "
          "gamma by about the learning rate, whatever the initial value of gamma is. Therefore, if eps is far below "
          "the learning rate, the first step erases eps, unless the learning rate warms up from almost 0. The weights "
          "inside a branch behind a gamma of 1e-6 have gradients below Adam's epsilon of 1e-8, so their first step is "
          "only some percent of the learning rate.",
      .constants = {{.name = "init",
                     .affects = Affects::start,
                     .meaning =
                         "initial value of every gamma; by depth: 0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 deeper"}},
      .build =
          [](const GateContext& c) {
            return gates_from<LayerScale>(c, c.dim, c.constant("init", layerscale_init(c.blocks)), c.layout);
          }}
      .with({{"init", init}});
}

}  // namespace plumb::nn
