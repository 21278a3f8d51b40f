// ReZero (Bachlechner et al. 2020): x' = x + a Attn(x), y = x' + a FFN(x'), without norm. The scalar a has the initial
// value 0.
// As in the authors' code, `rezero` has one scalar for each block, shared by both branches. `rezero_separate` has one
// scalar for each branch, as in the comparison of the CaiT paper. `rezero_ln` adds pre-norm. The authors of CaiT needed
// pre-norm and warm-up, because the plain form did not converge with DeiT's recipe.
// At initialisation every block is the identity, and the weights inside the branches get gradient 0: the first step
// changes only a. The paper has no final norm, but Plumb's models end in a norm with every method. The paper's base
// initialisation is Xavier with a packed qkv matrix.
#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

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
              "Do not combine ReZero with a last layer whose initial value is 0: neither the gate nor the last layer "
              "would get a gradient. Issues of the authors' repository (majumderb/rezero) report NaN with embeddings "
              "drawn from N(0, 0.02), where the authors advise U(+-1/D), and a network of 32 layers in which the "
              "alphas of layers 20 and later stayed near 0.",
          .build = [](const GateContext& c) { return gates_from<AlphaGate>(c, 0.0); }};
}

}  // namespace

Method methods::rezero() {
  Method m = method("rezero", Norm::none, "x + a f(x), a = 0, one per block",
                    "Networks without norms in the blocks, for one scalar per block. The authors report training "
                    "with 128 layers, and use no warm-up. Touvron et al. (CaiT) report that this form does not "
                    "converge with DeiT's recipe.");
  m.build = [](const GateContext& c) {
    BlockGates gates;
    gates.gates.assign(static_cast<std::size_t>(c.junctions), &gates.add("gate", std::make_unique<AlphaGate>(0)));
    return gates;
  };
  return m;
}

Method methods::rezero_separate() {
  return method("rezero_separate", Norm::none, "x + a f(x), a = 0, one per branch",
                "ReZero with one scalar per branch, as in the comparison of the CaiT paper, but without norm. With "
                "`--recipe shared`, a comparison with rezero_ln shows the effect of the norms.");
}

Method methods::rezero_ln() {
  Method m = method("rezero_ln", Norm::pre, "x + a f(LN(x)), a = 0, one per branch",
                    "To reproduce the ReZero column of table 1 in the CaiT paper, which adds norm and warm-up. "
                    "Touvron et al. report for DeiT on ImageNet that gates with the initial value eps (scalar_gate) "
                    "are better than gates that start at 0.");
  m.paper = cait_recipe();
  return m;
}

}  // namespace plumb::nn
