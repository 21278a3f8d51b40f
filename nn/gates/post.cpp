// Post-norm (Vaswani et al. 2017): x' = LN1(x + Attn(x)), y = LN2(x' + FFN(x')). No gate.
// The paper has no norm after the last block (LN2 is it) and needs warm-up; our trunk ends in a norm for every method.
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::post() {
  return {.name = "post",
          .norm = Norm::post,
          .paper = {.base = Base::xavier,
                    .warmup = 4000.0 / 100'000,
                    .source = "Vaswani et al. 2017: Glorot uniform, 4,000 of 100,000 steps of warm-up"},
          .formula = "LN(x + f(x))",
          .source = "Vaswani et al. 2017, Attention is all you need",
          .use = "The baseline of shallow networks, with warm-up.",
          .pitfalls =
              "Loses the gradient of early layers: its input Jacobian goes to 0 with depth. Without warm-up it trains "
              "at 6 blocks and hardly "
              "at 48 in our runs of 300 steps.",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
