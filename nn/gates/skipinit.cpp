// SkipInit (De, Smith 2020): x + a f(x), one scalar a branch that starts at 0, no norm, and a classifier that starts at 0.
// Written for residual CNNs; in a transformer it is ReZero with separate scalars and a zeroed head.
#include "nn/gates/gate.h"

namespace plumb::nn {
namespace {

struct SkipInitGate : ScaleGate {
  SkipInitGate() { scale_ = parameter("alpha", {1}, Init::constant(0), Role::gate); }
};

}  // namespace

Method skipinit() {
  return {.norm = Norm::none,
          .claims = {Claim::identity_at_init, Claim::zero_branch_gradient, Claim::loss_is_log_classes},
          .zero_head = true,
          .formula = "x + a f(x), a = 0, head = 0",
          .source = "De, Smith 2020, Batch normalization biases residual blocks towards the identity function",
          .build = gate_per_branch<SkipInitGate>};
}

}  // namespace plumb::nn
