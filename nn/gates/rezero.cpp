// ReZero (Bachlechner et al. 2020): x' = x + a Attn(x), y = x' + a FFN(x'); no norm, a starts at 0. Nothing is counted.
// One scalar a block, shared by both branches, as in the authors' code; `rezero_separate` has one a branch, as CaiT compared it, and
// `rezero_ln` puts pre-norm back, as CaiT had to (with warm-up: the plain form did not converge on DeiT's recipe).
// At init every block is the identity and the weights inside branches get gradient 0; the first step moves a alone.
// The paper uses no final norm and Xavier weights (a packed qkv matrix): the latter with the paper's base init.
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct ReZeroGate : ScaleGate {
  ReZeroGate() { scale_ = parameter("alpha", {1}, Init::constant(0), Role::gate); }
};

Method method(Norm norm, const char* formula, const char* use) {
  return {.norm = norm,
          .claims = {Claim::identity_at_init, Claim::zero_branch_gradient},
          .paper_base = Base::xavier_packed,
          .growth = Growth::identity,
          .formula = formula,
          .source = "Bachlechner et al. 2020, ReZero is all you need",
          .use = use,
          .pitfalls =
              "Never together with a last layer that starts at 0: neither would get a gradient. NaN where embeddings are N(0, 0.02): the "
              "authors advise U(+-1/D). In deep networks the alphas of late blocks stay near 0.",
          .build = gate_per_branch<ReZeroGate>};
}

}  // namespace

Method methods::rezero() {
  Method m = method(Norm::none, "x + a f(x), a = 0, one a block", "Signal propagation without any norm; no warm-up in its paper.");
  m.build = [](const GateContext&) {
    BlockGates gates;
    gates.attn = gates.mlp = &gates.add("gate", std::make_unique<ReZeroGate>());
    return gates;
  };
  return m;
}

Method methods::rezero_separate() { return method(Norm::none, "x + a f(x), a = 0, one a branch", "ReZero as CaiT compared it, but without norm."); }

Method methods::rezero_ln() {
  return method(Norm::pre, "x + a f(LN(x)), a = 0, one a branch", "The ReZero column of CaiT's table 1: norm and warm-up put back.");
}

}  // namespace plumb::nn
