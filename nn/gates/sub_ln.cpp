// Sub-LN, Magneto (Wang et al. 2022): x' = x + W_o LN(heads(LN1(x))), y = x' + fc2(LN(act(fc1(LN2(x'))))). This is
// pre-norm with a second norm before the last linear layer of each branch. The initial weights W_v, W_o, fc1 and fc2
// are multiplied by sqrt(ln 2N), with N blocks (for encoder-only or decoder-only models). A norm follows W_v, so the
// factor of W_v has no effect in the forward pass. The authors' code also scales the biases; in Plumb the biases have
// the initial value 0.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/inner_norm.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class SubLnGate : public ScaleGate {
 public:
  SubLnGate(const Layer& norm, double factor) : norm_(norm), factor_(factor) {}
  void init_branch(Branch& branch) override { branch.scale_value_path(factor_); }
  std::unique_ptr<BranchHooks> inside(Stream&) const override { return std::make_unique<InnerNorm>(norm_); }

 private:
  const Layer& norm_;
  double factor_;
};

}  // namespace

double sub_ln_factor(std::int64_t branches) { return std::sqrt(std::log(static_cast<double>(branches))); }

Method methods::sub_ln() {
  return {.name = "sub_ln",
          .norm = Norm::pre,
          .paper = {.base = Base::xavier,
                    .warmup = 5.0 / 300,
                    .source = "Wang et al. 2022: Glorot uniform, warm-up; the share of steps here is DeiT's"},
          .formula = "x + W LN(f'(LN(x))), v, o, fc1, fc2 x sqrt(ln 2N)",
          .source = "Wang et al. 2022, Foundation transformers (Magneto)",
          .counts = "N blocks",
          .use =
              "Pre-norm with four norms in each block. For vision, the authors report that it works better than "
              "deepnorm (microsoft/torchscale, issue 14).",
          .pitfalls = "The factor grows with depth. For a single block, ln 2N < 1.",
          .build = [](const GateContext& c) {
            check(c.count() > 1,
                  "[sub_ln] expected a stack of at least two branches, got 1: the factor sqrt(ln 1) = 0 would set the "
                  "weights of the branch to 0 for good. Use pre for one branch");
            return gates_with_norms(
                c,
                [](const GateContext& at) {
                  return NormSite{at.branch().name + "_norm", at.branch().hidden};
                },
                [](const GateContext& at, const Layer& norm) {
                  return std::make_unique<SubLnGate>(norm, sub_ln_factor(at.count()));
                });
          }};
}

}  // namespace plumb::nn
