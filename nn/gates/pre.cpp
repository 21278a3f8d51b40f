// Pre-norm (ViT, DeiT, GPT-2): x' = x + Attn(LN1(x)), y = x' + FFN(LN2(x')), and a norm after the last block. No gate.
#include "nn/gates/gate.h"

namespace plumb::nn {

Method pre() {
  return {.norm = Norm::pre,
          .formula = "x + f(LN(x))",
          .source = "Dosovitskiy et al. 2021, An image is worth 16x16 words",
          .build = gate_per_branch<ScaleGate>};
}

}  // namespace plumb::nn
