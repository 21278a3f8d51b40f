// Mix-LN (Li et al. 2024): the first ceil(0.25 N) blocks are post-norm, the rest pre-norm, and a norm after the last. N = blocks.
#include <cmath>

#include "nn/gates/methods.h"

namespace plumb::nn {

Method methods::mix_ln(double post_share) {
  check(0 <= post_share && post_share <= 1, "[mix_ln] expected a share of post-norm blocks in [0, 1], got {}", post_share);
  return {.name = "mix_ln",
          .norm = Norm::pre,
          .formula = "LN(x + f(x)) in the first ceil(N/4) blocks, then x + f(LN(x))",
          .source = "Li et al. 2024, Mix-LN: unleashing the power of deeper layers by combining pre-LN and post-LN",
          .counts = "N blocks",
          .use = "Between post- and pre-norm: its authors' aim is that deep blocks matter.",
          .pitfalls = "In the comparison of LayerNorm-Scaling's authors its models of 350M parameters and more did not train, like post-norm.",
          .build = [post_share](const GateContext& c) {
            BlockGates gates = gate_per_branch<ScaleGate>(c);
            if (static_cast<double>(c.block) < std::ceil(post_share * static_cast<double>(c.blocks) - 1e-9)) gates.norm = Norm::post;
            return gates;
          }};
}

}  // namespace plumb::nn
