// Constant multipliers of pre-norm branches: y = x + m f(LN(x)).
// `branch_scale`: m = N^(-1/2). `depth_mup` (Yang et al. 2023) and `complete_p` (Dey et al. 2025): m = (N /
// N_base)^(-a), a = 1/2 and 1, and for AdamW, on all of a block (weights, biases, norms): learning rate x (N /
// N_base)^(a-1), eps x (N / N_base)^(-a). N = blocks; N_base = depth at which the learning rate was tuned: there all
// three factors are 1 and the method is pre-norm to the bit. The authors' code also has a width part (rate and eps /
// width multiplier, std / its root): not built, as width is not an axis here. GPT-2's scaled init is not added.
#include <cmath>

#include "nn/gates/factors.h"
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
  return Method{
      .name = name,
      .norm = Norm::pre,
      .formula = formula,
      .source = source,
      .use = use,
      .pitfalls =
          "Tune the learning rate at the base depth, with the same method. Not together with GPT-2's scaled init.",
      .constants = {{.name = "base_depth",
                     .standard = 2,
                     .least = 0,
                     .above = true,
                     .meaning = "Nb, the blocks at which rates were tuned"}},
      .build = [=](const GateContext& c) { return two_gates<MultiplierGate>(std::pow(ratio(c), -a)); },
      .adjust =
          [=](const GateContext& c, const std::string&, Parameter& p) {
            p.lr_factor *= std::pow(ratio(c), a - 1);
            p.eps_factor *= std::pow(ratio(c), -a);
          },
      .follow =
          [](Method& m) {
            m.counts = fmt::format("N blocks; Nb = {:g}, the depth at which rates were tuned", *m.value("base_depth"));
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
                .use = "The multiplier of depth_mup without its rules for rate and eps.",
                .pitfalls = "A constant, not learned: the branch must grow by its weights.",
                .constants = {{.name = "multiplier", .meaning = "m, factor of every branch; by depth: N^-1/2"}},
                .build =
                    [](const GateContext& c) {
                      return two_gates<MultiplierGate>(c.constant("multiplier", branch_multiplier(c.blocks)));
                    }}
      .with({{"multiplier", multiplier}});
}

Method methods::depth_mup(double base_depth) {
  return depth_scaled("depth_mup", base_depth, 0.5, "x + m f(LN(x)), m = (N/Nb)^-1/2, lr and eps x (N/Nb)^-1/2",
                      "Yang et al. 2023, Tensor programs VI", "One learning rate for all depths.");
}

Method methods::complete_p(double base_depth) {
  return depth_scaled("complete_p", base_depth, 1, "x + m f(LN(x)), m = (N/Nb)^-1, eps x (N/Nb)^-1",
                      "Dey et al. 2025, Don't be lazy: CompleteP enables compute-efficient deep transformers",
                      "As depth_mup, with the branches weighing less and the rate not falling with depth.");
}

}  // namespace plumb::nn
