// Norm before and after each branch: x' = x + LN(Attn(LN(x))), y = x' + LN(FFN(LN(x'))).
// `sandwich` (CogView, Ding et al. 2021) also starts W_o and fc2 as GPT-2 does, x (2N)^(-1/2): without effect forward,
// up to eps, as a norm follows. `peri_ln` (Kim et al. 2025) leaves them alone; its paper optionally normalises the
// embedding too (not built) and finds that freezing the output norms' gains hurts. The branch's output is scale-free;
// the stream's mean square grows by 1 a branch.
#include "nn/gates/factors.h"
#include "nn/gates/inner_norm.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class SandwichGate : public NormAfter {
 public:
  SandwichGate(const Layer& norm, double last_factor) : NormAfter(norm), last_factor_(last_factor) {}
  void init_branch(Branch& branch) override { branch.last().scale_init(last_factor_); }

 private:
  double last_factor_;
};

BlockGates build(const GateContext& c, double last_factor) {
  return gates_with_norms<SandwichGate, SandwichGate>(c, "norm1_out", "norm2_out", c.dim, last_factor);
}

}  // namespace

Method methods::sandwich() {
  return {
      .name = "sandwich",
      .norm = Norm::pre,
      .formula = "x + LN(f(LN(x))), o, fc2 x (2N)^-1/2",
      .source = "Ding et al. 2021, CogView: mastering text-to-image generation via transformers",
      .counts = "L = 2N branches",
      .use = "Every branch adds the same size, whatever its weights.",
      .pitfalls =
          "Scaling the last layer has no forward effect before a norm, but shows through eps where the output is tiny.",
      .build = [](const GateContext& c) { return build(c, gpt2_factor(c.blocks)); }};
}

Method methods::peri_ln() {
  return {.name = "peri_ln",
          .norm = Norm::pre,
          .formula = "x + LN(f(LN(x)))",
          .source = "Kim et al. 2025, Peri-LN: revisiting layer normalization in the transformer architecture",
          .use = "As sandwich, with the last layers left as they start.",
          .pitfalls =
              "At init each branch adds a mean square of 1, however small its weights: much more than a pre-norm "
              "branch of std 0.02 does.",
          .build = [](const GateContext& c) { return build(c, 1); }};
}

}  // namespace plumb::nn
