// Scalar gate a = eps (CaiT's strengthened ReZero): x + a f(LN(x)), one scalar a branch that starts at eps, not 0. LayerScale tied to
// one number: the ablation of "per channel". eps by LayerScale's rule for the depth in blocks N.
#include "nn/gates/layerscale.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
Method methods::scalar_gate(std::optional<double> init) {
  return {.name = "scalar_gate",
          .norm = Norm::pre,
          .paper = cait_recipe(),
          .formula = "x + a f(LN(x)), a = eps by depth",
          .source = "Touvron et al. 2021, Going deeper with image transformers",
          .counts = "N blocks (eps)",
          .use = "Beside layerscale: what one number a branch instead of one a channel costs. CaiT found eps better than 0.",
          .pitfalls = "Under Adam the first step moves a by about the learning rate, whatever eps is.",
          .build = [init](const GateContext& c) { return two_gates<AlphaGate>(init.value_or(layerscale_init(c.blocks))); }};
}

}  // namespace plumb::nn
