// Post-norm (Vaswani et al. 2017): x' = LN1(x + Attn(x)), y = LN2(x' + FFN(x')). There is no gate.
// The paper needs warm-up, and has no norm after the last block (LN2 is the last norm). Plumb's models end in a norm
// with every method.
#include "nn/gates/gate.h"
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
          .use =
              "The block of the original transformer, which was trained with a warm-up of 4,000 steps, and the "
              "baseline for the other post-norm methods. Touvron et al. (CaiT) report that DeiT does not converge "
              "well with post-norm.",
          .pitfalls =
              "Early layers lose their gradient: the input Jacobian goes to 0 with depth. In the notebook of "
              "ReZero's authors (width 16, at initialisation), the mean squared singular value of this Jacobian is "
              "0.810 at 12 blocks and 0.000 at 128.",
          .build = gates_from<ScaleGate>};
}

}  // namespace plumb::nn
