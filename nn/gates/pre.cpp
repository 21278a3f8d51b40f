// Pre-norm (ViT, DeiT, GPT-2): x' = x + Attn(LN1(x)), y = x' + FFN(LN2(x')), with a norm after the last block. There is
// no gate. The mean square of the stream grows about linearly with depth, so late branches have less influence on the
// stream.
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::pre() {
  return {.name = "pre",
          .norm = Norm::pre,
          .formula = "x + f(LN(x))",
          .source = "Dosovitskiy et al. 2021, An image is worth 16x16 words",
          .use = "The baseline for all other methods.",
          .pitfalls =
              "The final norm is necessary. With DeiT's recipe, training does not converge beyond about 18 blocks (24 "
              "and 36 "
              "blocks fail at its drop-path rate).",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
