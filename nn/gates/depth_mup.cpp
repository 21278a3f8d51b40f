// Methods with a constant multiplier m for each pre-norm branch: y = x + m f(LN(x)). N is the number of blocks.
// `branch_scale` has m = N^(-1/2).
// `depth_mup` (Yang et al. 2023) and `complete_p` (Dey et al. 2025) have m = (N / N_base)^(-a), with a = 1/2 for
// `depth_mup` and a = 1 for `complete_p`. For AdamW, the learning rate of all parameters of a block (weights, biases,
// norms) is multiplied by (N / N_base)^(a-1), and eps by (N / N_base)^(-a). N_base is the depth at which the learning
// rate was tuned; at that depth all three factors are 1, and the method equals pre-norm bit for bit.
// The authors' code also has a width part (learning rate and eps divided by the width multiplier, std divided by the
// root of the width multiplier). The width part is not implemented, because Plumb's studies do not vary the width. The
// methods do not include GPT-2's scaled init.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class MultiplierGate : public ScaleGate {
 public:
  explicit MultiplierGate(double multiplier) : ScaleGate(full({1}, multiplier)) {}
};

Method depth_scaled(const char* name, double base_depth, double a, const char* formula, const char* source,
                    const char* use) {
  const auto ratio = [](const GateContext& c) { return static_cast<double>(c.blocks) / c.constant("base_depth"); };
  return Method{.name = name,
                .norm = Norm::pre,
                .formula = formula,
                .source = source,
                .use = use,
                .pitfalls =
                    "Tune the learning rate at the base depth, with the same method. Do not combine the method with "
                    "GPT-2's scaled init.",
                .constants = {{.name = "base_depth",
                               .standard = 2,
                               .least = 0,
                               .above = true,
                               .meaning = "Nb, the depth in blocks at which the learning rate was tuned"}},
                .build = [=](const GateContext& c) { return gates_from<MultiplierGate>(c, std::pow(ratio(c), -a)); },
                .adjust =
                    [=](const GateContext& c, const std::string&, Parameter& p) {
                      p.lr_factor() *= std::pow(ratio(c), a - 1);
                      p.eps_factor() *= std::pow(ratio(c), -a);
                    },
                .follow =
                    [](Method& m) {
                      m.counts = fmt::format("N blocks; Nb = {:g}, the depth at which the learning rate was tuned",
                                             *m.value("base_depth"));
                    }}
      .with({{"base_depth", base_depth}});
}

}  // namespace

double branch_multiplier(std::int64_t blocks) { return 1 / std::sqrt(static_cast<double>(blocks)); }

Method methods::branch_scale(std::optional<double> multiplier) {
  return Method{.name = "branch_scale",
                .norm = Norm::pre,
                .formula = "x + m f(LN(x)), m = N^-1/2",
                .source = "constant multiplier, no single paper",
                .counts = "N blocks",
                .use =
                    "A constant multiplier for every branch, without depth_mup's rules for learning rate and eps. "
                    "With the standard multiplier, all branches together add as much mean square at initialisation "
                    "as two branches of pre-norm, at any depth.",
                .pitfalls = "The multiplier is constant, not learned: a branch can only grow through its weights.",
                .constants = {{.name = "multiplier", .meaning = "m, factor of every branch; by depth: N^-1/2"}},
                .build =
                    [](const GateContext& c) {
                      return gates_from<MultiplierGate>(c, c.constant("multiplier", branch_multiplier(c.blocks)));
                    }}
      .with({{"multiplier", multiplier}});
}

Method methods::depth_mup(double base_depth) {
  return depth_scaled("depth_mup", base_depth, 0.5, "x + m f(LN(x)), m = (N/Nb)^-1/2, lr and eps x (N/Nb)^-1/2",
                      "Yang et al. 2023, Tensor programs VI",
                      "To tune the learning rate at a small base depth and use it in deeper networks: the multiplier "
                      "and the factors of the learning rate and eps are designed for this purpose. At the base "
                      "depth, the method equals pre-norm.");
}

Method methods::complete_p(double base_depth) {
  return depth_scaled(
      "complete_p", base_depth, 1, "x + m f(LN(x)), m = (N/Nb)^-1, eps x (N/Nb)^-1",
      "Dey et al. 2025, Don't be lazy: CompleteP enables compute-efficient deep transformers",
      "Like depth_mup, but the learning rate does not fall with depth, and beyond the base depth the multiplier of "
      "the branches is smaller.");
}

}  // namespace plumb::nn
