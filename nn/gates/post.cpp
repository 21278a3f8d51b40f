// Post-norm (Vaswani et al. 2017): x' = LN1(x + Attn(x)), y = LN2(x' + FFN(x')). No gate.
// The paper has no norm after the last block (LN2 is it) and needs warm-up; our trunk ends in a norm for every method.
#include "nn/gates/gate.h"

namespace plumb::nn {

Method post() {
  return {.norm = Norm::post,
          .paper_base = Base::xavier,
          .formula = "LN(x + f(x))",
          .source = "Vaswani et al. 2017, Attention is all you need",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
