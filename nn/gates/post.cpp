// Post-norm (Vaswani et al. 2017): x' = LN1(x + Attn(x)), y = LN2(x' + FFN(x')). There is no gate.
// The paper needs warm-up, and has no norm after the last block (LN2 is the last norm). Plumb's models end in a norm
// with every method.
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::post() {
  return {.name = "post",
          .norm = Norm::post,
          .paper = {.base = Base::xavier,
                    .warmup = 4000.0 / 100'000,
                    .source = "Vaswani et al. 2017: Glorot uniform, warm-up in 4,000 of 100,000 steps"},
          .formula = "LN(x + f(x))",
          .source = "Vaswani et al. 2017, Attention is all you need",
          .use = "The baseline for shallow networks, with warm-up.",
          .pitfalls =
              "Early layers lose their gradient: the input Jacobian goes to 0 with depth. In our trials of 300 steps "
              "without "
              "warm-up, it trains at 6 blocks and hardly trains at 48.",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
