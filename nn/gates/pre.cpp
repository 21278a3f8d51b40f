// Pre-norm (ViT, DeiT, GPT-2): x' = x + Attn(LN1(x)), y = x' + FFN(LN2(x')), and a norm after the last block. No gate.
// The mean square of the stream grows about linearly with depth, so late branches weigh less.
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::pre() {
  return {.name = "pre",
          .norm = Norm::pre,
          .formula = "x + f(LN(x))",
          .source = "Dosovitskiy et al. 2021, An image is worth 16x16 words",
          .use = "The baseline that every other method is measured against.",
          .pitfalls =
              "Needs the final norm. DeiT's recipe stops converging beyond about 18 blocks (24 and 36 fail at its "
              "drop-path rate).",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
