// ReZero (Bachlechner et al. 2020): x' = x + a Attn(x), y = x' + a FFN(x'); no norm, a starts at 0.
// One scalar a block, shared by both branches, as in the authors' code; `rezero_separate` has one a branch, as CaiT compared it.
// At init every block is the identity and the weights inside branches get gradient 0; the first step moves a alone.
// The paper uses no final norm and Xavier weights (a packed qkv matrix): the latter with the paper's base init.
#include "nn/gates/gate.h"

namespace plumb::nn {
namespace {

struct ReZeroGate : ScaleGate {
  ReZeroGate() { scale_ = parameter("alpha", {1}, Init::constant(0), Role::gate); }
};

Method method(const char* formula) {
  return {.norm = Norm::none,
          .claims = {Claim::identity_at_init, Claim::zero_branch_gradient},
          .paper_base = Base::xavier_packed,
          .formula = formula,
          .source = "Bachlechner et al. 2020, ReZero is all you need"};
}

}  // namespace

Method rezero() {
  Method m = method("x + a f(x), a = 0, one a block");
  m.build = [](const GateContext&) {
    auto gate = std::make_unique<ReZeroGate>();
    BlockGates gates{.modules = {}, .attn = gate.get(), .mlp = gate.get()};
    gates.modules.emplace_back("gate", std::move(gate));
    return gates;
  };
  return m;
}

Method rezero_separate() {
  Method m = method("x + a f(x), a = 0, one a branch");
  m.build = gate_per_branch<ReZeroGate>;
  return m;
}

}  // namespace plumb::nn
