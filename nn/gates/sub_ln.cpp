// Sub-LN, Magneto (Wang et al. 2022): x' = x + W_o LN(heads(LN1(x))), y = x' + fc2(LN(act(fc1(LN2(x'))))): a norm
// before the last linear of each branch, besides pre-norm. W_v, W_o, fc1, fc2 start x sqrt(ln 2N), N = blocks (encoder
// or decoder only). W_v is followed by a norm, so its factor has no forward effect. The authors' code scales biases too
// (ours start at 0).
#include <cmath>

#include "nn/gates/factors.h"
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

double sub_ln_factor(std::int64_t blocks) { return std::sqrt(std::log(2.0 * static_cast<double>(blocks))); }

Method methods::sub_ln() {
  return {.name = "sub_ln",
          .norm = Norm::pre,
          .paper = {.base = Base::xavier,
                    .warmup = 5.0 / 300,
                    .source = "Wang et al. 2022: Glorot uniform, a warm-up; our share is DeiT's"},
          .formula = "x + W LN(f'(LN(x))), v, o, fc1, fc2 x sqrt(ln 2N)",
          .source = "Wang et al. 2022, Foundation transformers (Magneto)",
          .counts = "N blocks",
          .use = "Pre-norm with four norms a block, meant by its authors for language and vision alike.",
          .pitfalls = "The factor grows with depth. One block has ln 2N < 1.",
          .build = [](const GateContext& c) {
            return gates_with_norms<SubLnGate, SubLnGate>(c, "attn_norm", "mlp_norm", c.hidden,
                                                          sub_ln_factor(c.blocks));
          }};
}

}  // namespace plumb::nn
