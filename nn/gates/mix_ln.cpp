// Mix-LN (Li et al. 2024): the first ceil(0.25 N) blocks are post-norm, the other blocks are pre-norm, and a norm
// follows the last block. N is the number of blocks.
#include <cmath>

#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::mix_ln(double post_share) {
  return Method{
      .name = "mix_ln",
      .norm = Norm::pre,
      .formula = "LN(x + f(x)) in the first ceil(N/4) blocks, then x + f(LN(x))",
      .source = "Li et al. 2024, Mix-LN: unleashing the power of deeper layers by combining pre-LN and post-LN",
      .counts = "N blocks",
      .use =
          "A mixture of post-norm and pre-norm without additional parameters. Its authors want deep blocks to keep "
          "their influence. For language models of 130M parameters, Sun et al. 2025 (LayerNorm-Scaling) report a "
          "perplexity of 26.07 against 26.73 of pre-norm (quoted from a secondary text).",
      .pitfalls =
          "In the comparison by the authors of LayerNorm-Scaling, models of 350M parameters and more did not train "
          "with Mix-LN or with post-norm: their perplexities are above 1,300 (quoted from a secondary text).",
      .constants = {{.name = "post_share",
                     .standard = 0.25,
                     .least = 0,
                     .most = 1,
                     .meaning = "share of the blocks, counted from the first and rounded up, that are post-norm"}},
      .build =
          [](const GateContext& c) {
            BlockGates gates = gates_from<ScaleGate>(c);
            const double share = c.constant("post_share");
            if (static_cast<double>(c.block) < std::ceil(share * static_cast<double>(c.blocks) - 1e-9))
              gates.norm = Norm::post;
            return gates;
          }}
      .with({{"post_share", post_share}});
}

}  // namespace plumb::nn
