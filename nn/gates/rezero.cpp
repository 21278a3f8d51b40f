// ReZero (Bachlechner et al. 2020): x' = x + a Attn(x), y = x' + a FFN(x'); no norm, a starts at 0.
// One scalar a block, shared by both branches, as in the authors' code; `rezero_separate` has one a branch, as CaiT
// compared it, and `rezero_ln` puts pre-norm back, as CaiT had to (with warm-up: the plain form did not converge on
// DeiT's recipe). At init every block is the identity and the weights inside branches get gradient 0; the first step
// moves a alone. The paper has no final norm, our trunk ends in one for every method; its Xavier weights (a packed qkv
// matrix) come with the paper's base init.
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

Method method(const char* name, Norm norm, const char* formula, const char* use) {
  return {.name = name,
          .norm = norm,
          .claims = {InitProperty::identity_at_init, InitProperty::zero_branch_gradient},
          .paper = {.base = Base::xavier_packed,
                    .source = "Bachlechner et al. 2020: Glorot uniform of the packed qkv, no warm-up"},
          .growth = Growth::identity,
          .formula = formula,
          .source = "Bachlechner et al. 2020, ReZero is all you need",
          .use = use,
          .pitfalls =
              "Never together with a last layer that starts at 0: neither would get a gradient. NaN where embeddings "
              "are N(0, 0.02): the "
              "authors advise U(+-1/D). In one 32-layer run the alphas of layers 20 and later stayed near 0.",
          .build = [](const GateContext&) { return two_gates<AlphaGate>(0.0); }};
}

}  // namespace

Method methods::rezero() {
  Method m = method("rezero", Norm::none, "x + a f(x), a = 0, one a block",
                    "Signal propagation without any norm; no warm-up in its paper.");
  m.build = [](const GateContext&) {
    BlockGates gates;
    gates.attn = gates.mlp = &gates.add("gate", std::make_unique<AlphaGate>(0));
    return gates;
  };
  return m;
}

Method methods::rezero_separate() {
  return method("rezero_separate", Norm::none, "x + a f(x), a = 0, one a branch",
                "ReZero as CaiT compared it, but without norm.");
}

Method methods::rezero_ln() {
  Method m = method("rezero_ln", Norm::pre, "x + a f(LN(x)), a = 0, one a branch",
                    "The ReZero column of CaiT's table 1: norm and warm-up put back.");
  m.paper = cait_recipe();
  return m;
}

}  // namespace plumb::nn
