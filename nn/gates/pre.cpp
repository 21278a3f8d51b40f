// Pre-norm (ViT, DeiT, GPT-2): x' = x + Attn(LN1(x)), y = x' + FFN(LN2(x')), with a norm after the last block. There is
// no gate. The mean square of the stream grows about linearly with depth, so late branches have less influence on the
// stream.
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::pre() {
  return {.name = "pre",
          .norm = Norm::pre,
          .formula = "x + f(LN(x))",
          .source = "Dosovitskiy et al. 2021, An image is worth 16x16 words",
          .use =
              "The block of ViT, DeiT and GPT-2, and the baseline for all other methods. At initialisation, the mean "
              "square of the stream grows linearly with depth, so the share of each later branch is smaller.",
          .pitfalls =
              "The final norm is necessary, because no norm follows the last residual sum. For DeiT on ImageNet, "
              "table 1 in the CaiT paper has 24 and 36 blocks as failures at a drop-path rate of 0.05 (quoted from a "
              "secondary text). At a rate of 0.2, an author reports 81.0 % top-1 with 24 blocks "
              "(facebookresearch/deit, issue 218).",
          .build = gates_from<ScaleGate>};
}

}  // namespace plumb::nn
