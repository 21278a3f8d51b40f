// SkipInit (De, Smith 2020): x + a f(x), one scalar a branch that starts at 0, no norm, and a classifier that starts at
// 0. Written for residual CNNs, where convolutions get biases; in a transformer it is ReZero with separate scalars and
// a zeroed head. 1/sqrt(number of blocks) also works as a start. The authors' code puts the scalar at the very end of
// the branch, after stochastic depth. There is no final norm there; our trunk ends in one for every method.
#include "nn/gates/methods.h"

namespace plumb::nn {
Method methods::skipinit() {
  return {
      .name = "skipinit",
      .norm = Norm::none,
      .claims = {InitProperty::identity_at_init, InitProperty::zero_branch_gradient, InitProperty::loss_is_log_classes},
      .paper = {.zero_head = true,
                .source = "De, Smith 2020: no warm-up, a classifier that starts at 0; weights: ours, of ViT"},
      .growth = Growth::identity,
      .formula = "x + a f(x), a = 0, head = 0",
      .source = "De, Smith 2020, Batch normalization biases residual blocks towards the identity function",
      .use = "Residual networks without norm; beside ReZero it shows what a zeroed head changes.",
      .pitfalls = "Step 1 moves the head alone, step 2 the gates, step 3 the rest.",
      .build = [](const GateContext&) { return two_gates<AlphaGate>(0.0); }};
}

}  // namespace plumb::nn
