// Scalar gate (CaiT's strengthened ReZero): x + a f(LN(x)). Each branch has one scalar a, with the initial value eps
// instead of 0. The method is LayerScale with one number for each branch instead of one number for each channel, for
// ablations. eps depends on the number of blocks N by LayerScale's rule.
#include "nn/gates/gate_forms.h"
#include "nn/gates/layerscale.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

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
          "A comparison with layerscale shows the effect of one number per branch instead of one number per channel. "
          "Touvron et al. (CaiT, table 1) report for DeiT on ImageNet that the initial value eps is better than 0.",
      .pitfalls =
          "With Adam, the first step moves a by about the learning rate, whatever eps is. The weights inside a "
          "branch behind an a of 1e-6 have gradients below Adam's epsilon of 1e-8, so their first step is only "
          "some percent of the learning rate.",
      .constants = {{.name = "init",
                     .affects = Affects::start,
                     .meaning = "initial value of every a; by depth: 0.1 up to 18 blocks, 1e-5 up to 24, 1e-6 deeper"}},
      .build =
          [](const GateContext& c) { return gates_from<AlphaGate>(c, c.constant("init", layerscale_init(c.blocks))); }}
      .with({{"init", init}});
}

}  // namespace plumb::nn
