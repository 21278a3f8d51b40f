// Scalar gate a = eps (CaiT's strengthened ReZero): x + a f(LN(x)), one scalar a branch that starts at eps, not 0.
// LayerScale tied to one number: the ablation of "per channel". eps by LayerScale's rule for the depth in blocks N.
#include "nn/gates/layerscale.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
Method methods::scalar_gate(std::optional<double> init) {
  return Method{
      .name = "scalar_gate",
      .norm = Norm::pre,
      .paper = cait_recipe(),
      .formula = "x + a f(LN(x)), a = eps by depth",
      .source = "Touvron et al. 2021, Going deeper with image transformers",
      .counts = "N blocks (eps)",
      .use =
          "Beside layerscale: what one number a branch instead of one a channel costs. CaiT found eps better than 0.",
      .pitfalls = "Under Adam the first step moves a by about the learning rate, whatever eps is.",
      .constants = {{.name = "init",
                     .affects = Affects::start,
                     .meaning = "every a at the start; by depth: 0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 deeper"}},
      .build = [](const GateContext& c) { return two_gates<AlphaGate>(c.constant("init", layerscale_init(c.blocks))); }}
      .with({{"init", init}});
}

}  // namespace plumb::nn
