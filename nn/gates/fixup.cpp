// Fixup (Zhang, Dauphin, Ma 2019) has no norms in the blocks. L is the number of residual branches (two per block), and
// m the number of weight layers in a branch. The rules:
//   (1) The last layer of each branch and the classifier have the initial value 0.
//   (2) The other initial weights are multiplied by L^(-1/(2m-2)).
//   (3) A scalar shift, initially 0, is added before every linear layer and activation. A scalar scale, initially 1,
//   multiplies the value of the branch.
// Attention counts m = 4 layers (q, k, v, out), so qkv is multiplied by L^(-1/6). The MLP counts m = 2, so fc1 is
// multiplied by L^(-1/2). The scalars have a tenth of the learning rate. At step 0, only the head gets a gradient.
// Differences from the paper: the authors' transformer has no biases in linear layers and subtracts the shifts; Plumb
// keeps the biases and adds the shifts. The authors' derivation for m = 2 assumes ReLU; Plumb uses GELU. The authors'
// encoder ends in a shift and a scale, and weight decay applies to all parameters; Plumb's models end in a norm with
// every method, and weight decay does not apply to the scalars. The paper claims that no warm-up is needed, but the
// authors' published transformer script warms up for 4000 steps. In this script, the cross-attention does not get the
// number of layers and uses 12.
// `fixup_ln` adds pre-norm (affine), as in the comparison of the CaiT paper. The CaiT authors did not publish code for
// this variant; the form here is Plumb's choice.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

namespace plumb::nn {
namespace {

// The shifts of one branch, undefined where the branch has none. A branch with an activation has shifts before its
// layers and before the activation; attention has one before qkv.
struct Shifts : BranchHooks {
  Tensor first, activation, last;
  Tensor input(const Tensor& x) const override { return x + first; }
  Tensor projected(const Tensor& u) const override { return activation.defined() ? u + activation : u; }
  Tensor hidden(const Tensor& h) const override { return last.defined() ? h + last : h; }
};

// The shifts of a block, with parameters attn, fc1, act and fc2 in a transformer.
struct BlockShifts : Module {
  BlockShifts() : Module("Shifts") {}
  Shifts of(const BranchShape& branch) {
    Shifts shifts;
    if (!branch.activation) {
      shifts.first = shift(branch.name);
      return shifts;
    }
    const bool mlp = branch.name == "mlp";
    shifts.first = shift(mlp ? "fc1" : branch.name + "_first");
    shifts.activation = shift(mlp ? "act" : branch.name + "_act");
    shifts.last = shift(mlp ? "fc2" : branch.name + "_last");
    return shifts;
  }

 private:
  Tensor shift(const std::string& name) { return parameter(name, {1}, Init::constant(0), Role::shift); }
};

// The rules that a method applies, for ablations. The classifier with initial value 0 and the learning rate of the
// scalars belong to the recipe, not to these rules.
struct Parts {
  bool zero_last = true;  // rule 1
  double factor = 1;      // rule 2: exponent of the factor L^(-1/(2m-2)); 0: no factor, 2: the square of the factor
  bool shifts = true;     // rule 3
  bool scales = true;     // rule 3
};

class FixupGate : public ScaleGate {
 public:
  FixupGate(const Parts& parts, std::optional<Shifts> shifts, const GateContext& c)
      : shifts_(std::move(shifts)),
        factor_(std::pow(fixup_factor(c.count(), c.branch().weight_layers), parts.factor)),
        zero_last_(parts.zero_last) {
    if (parts.scales) scale_ = parameter("scale", {1}, Init::constant(1), Role::gate);
  }
  void init_branch(Branch& branch) override {
    const std::vector<WeightLayer*> layers = branch.weight_layers();
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) layers[i]->scale_init(factor_);
    if (zero_last_) branch.last().scale_init(0);
  }
  std::unique_ptr<BranchHooks> inside(Stream&) const override {
    return shifts_ ? std::make_unique<Shifts>(*shifts_) : nullptr;
  }

 private:
  std::optional<Shifts> shifts_;  // empty if the rule for shifts is off
  double factor_;
  bool zero_last_;
};

Parts chosen_parts(const GateContext& c) {
  return {.zero_last = c.constant("zero_last") != 0,
          .factor = c.constant("factor"),
          .shifts = c.constant("shifts") != 0,
          .scales = c.constant("scales") != 0};
}

MethodConstant part(const char* name, Affects affects, const char* meaning) {
  return {.name = name, .standard = 1, .least = 0, .most = 1, .whole = true, .affects = affects, .meaning = meaning};
}

Parts all_parts(const GateContext&) { return {}; }

Method method(const char* name, Norm norm, Recipe paper, const char* formula, const char* use,
              Parts (*parts_of)(const GateContext&)) {
  return {
      .name = name,
      .norm = norm,
      .claims = {InitProperty::identity_at_init, InitProperty::zero_branch_gradient, InitProperty::loss_is_log_classes},
      .paper = std::move(paper),
      .growth = Growth::identity,
      .formula = formula,
      .source = "Zhang, Dauphin, Ma 2019, Fixup initialization",
      .counts = "L = 2N branches",
      .use = use,
      .pitfalls =
          "The paper gives the scalars a tenth of the learning rate, and `--recipe shared` does not; issue 6 of "
          "hongyi-zhang/Fixup reports that training can diverge at the full rate. Do not combine Fixup with a gate "
          "whose initial value is 0. With a classifier of initial value 0, step 1 changes only the head. The "
          "authors' result on ImageNet (ResNet-50, about 76.0 % top-1) uses mixup of 0.7.",
      .build = [parts_of](const GateContext& c) {
        const Parts parts = parts_of(c);
        auto shifts = parts.shifts ? std::make_unique<BlockShifts>() : nullptr;
        BlockGates gates = gate_per_junction(c, [&](const GateContext& at) {
          return std::make_unique<FixupGate>(parts, shifts ? std::optional(shifts->of(at.branch())) : std::nullopt, at);
        });
        if (shifts) gates.add("shifts", std::move(shifts));
        return gates;
      }};
}

}  // namespace

double fixup_factor(std::int64_t branches, int weight_layers) {
  if (weight_layers < 2) return 1;  // the only layer of the branch is its last layer, which the factor leaves out
  return std::pow(static_cast<double>(branches), -1.0 / (2 * weight_layers - 2));
}

Method methods::fixup() {
  Method m = method("fixup", Norm::none,
                    {.base = Base::xavier,
                     .zero_head = true,
                     .scalar_rate = 0.1,
                     .source = "Zhang, Dauphin, Ma 2019: Glorot uniform, a classifier with initial value 0, scalars at "
                               "a tenth of the learning rate, no warm-up"},
                    "x + s f(x + b), s = 1, last layers and head 0",
                    "Networks without norms in the blocks, for six scalars per block. The abstract of the paper "
                    "reports training at 10,000 layers (quoted from a secondary text). The comparison of the CaiT "
                    "paper adds norm and warm-up (fixup_ln).",
                    chosen_parts);
  m.constants = {part("zero_last", Affects::start, "rule 1: the last layer of each branch has the initial value 0"),
                 {.name = "factor",
                  .standard = 1,
                  .affects = Affects::start,
                  .meaning = "rule 2: exponent of the factor; 0: no factor, 2: the square of the factor"},
                 part("shifts", Affects::parameters, "rule 3: scalar shifts before linear layers and activations"),
                 part("scales", Affects::parameters, "rule 3: scalar scales at the ends of the branches")};
  m.follow = [claims = m.claims, growth = m.growth](Method& fixup) {
    const bool whole = fixup.chosen.empty();  // only the complete method has claims
    fixup.claims = whole ? claims : std::vector<InitProperty>();
    fixup.growth = whole ? growth : Growth::unstated;
  };
  return m;
}

Method methods::fixup_ln() {
  return method(
      "fixup_ln", Norm::pre,
      {.zero_head = true,
       .scalar_rate = 0.1,
       .warmup = 5.0 / 300,
       .source = "Touvron et al. 2021, CaiT: weights and warm-up of DeiT; classifier and scalars as in Zhang, "
                 "Dauphin, Ma 2019"},
      "x + s f(LN(x) + b), s = 1, last layers and head 0",
      "To reproduce the Fixup column of table 1 in the CaiT paper, which adds norm and warm-up. Touvron et al. "
      "report for DeiT on ImageNet that this form competes with LayerScale at 12 to 18 blocks, and that LayerScale "
      "is better in deeper networks.",
      all_parts);
}

}  // namespace plumb::nn
