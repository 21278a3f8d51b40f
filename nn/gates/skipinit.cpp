// SkipInit (De, Smith 2020): x + a f(x), with one scalar a for each branch, and without norm. The scalars and the
// classifier have the initial value 0. The paper treats residual CNNs, whose convolutions get biases. In a transformer,
// SkipInit is ReZero with separate scalars and a head with initial value 0. The initial value a = 1/sqrt(number of
// blocks) also works. The authors' code applies the scalar at the very end of the branch, after stochastic depth. The
// paper has no final norm, but Plumb's models end in a norm with every method.
#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
Method methods::skipinit() {
  return {
      .name = "skipinit",
      .norm = Norm::none,
      .claims = {InitProperty::identity_at_init, InitProperty::zero_branch_gradient, InitProperty::loss_is_log_classes},
      .paper = {.zero_head = true,
                .source = "De, Smith 2020: no warm-up, a classifier with initial value 0; the other weights here are "
                          "those of ViT"},
      .growth = Growth::identity,
      .formula = "x + a f(x), a = 0, head = 0",
      .source = "De, Smith 2020, Batch normalization biases residual blocks towards the identity function",
      .use =
          "Residual networks without norm, for one scalar per branch. De and Smith propose the method for residual "
          "CNNs and train 1,000 layers (quoted from a secondary text). At equal initial weights, the only difference "
          "from rezero_separate is the head with initial value 0, which `--recipe shared` leaves out.",
      .pitfalls = "Step 1 changes only the head, step 2 also the gates, step 3 also all other weights.",
      .build = [](const GateContext& c) { return gates_from<AlphaGate>(c, 0.0); }};
}

}  // namespace plumb::nn
