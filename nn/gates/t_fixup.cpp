// T-Fixup (Huang et al. 2020): plain x + f(x), without norm, warm-up and gate; the method changes only the initial
// weights. N is the number of blocks of the stack. In the encoder, the initial weights W_v, W_o, fc1 and fc2 are
// multiplied by 0.67 N^(-1/4); W_q and W_k keep Xavier. (In the decoder the factor is (9N)^(-1/4), also for the
// embeddings.)
// The authors' code initialises q, k and v with the Xavier gain 1/sqrt(2), and removes this gain for v only. The
// authors' q and k are therefore smaller than Plumb's by a factor of sqrt(2). The authors' code scales the token
// embeddings of the decoder; Plumb's patch embedding is not scaled. The authors' code has no final norm, but Plumb's
// models end in a norm with every method. `t_fixup_ln` adds pre-norm, as in the comparison of the CaiT paper.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"
#include "nn/gates/recipe.h"

namespace plumb::nn {
namespace {

class TFixupGate : public ScaleGate {
 public:
  explicit TFixupGate(const GateContext& c) : factor_(t_fixup_factor(c.count())) {}
  void init_branch(Branch& branch) override { branch.scale_value_path(factor_); }

 private:
  double factor_;
};

Method method(const char* name, Norm norm, Recipe paper, Growth growth, const char* formula, const char* use,
              const std::string& pitfalls = "") {
  return {.name = name,
          .norm = norm,
          .paper = std::move(paper),
          .growth = growth,
          .formula = formula,
          .source = "Huang et al. 2020, Improving transformer optimization through better initialization",
          .counts = "N blocks",
          .use = use,
          .pitfalls =
              "The authors did not specify the method for encoder-only models; Plumb uses the factor of the authors' "
              "encoder." +
              pitfalls,
          .build = gates_from<TFixupGate>};
}

}  // namespace

double t_fixup_factor(std::int64_t branches) { return 0.67 * std::pow(static_cast<double>(branches) / 2, -0.25); }

double t_fixup_decoder_factor(std::int64_t blocks) { return std::pow(9.0 * static_cast<double>(blocks), -0.25); }

Method methods::t_fixup() {
  return method("t_fixup", Norm::none,
                {.base = Base::xavier, .source = "Huang et al. 2020: Glorot uniform, no warm-up"}, Growth::geometric,
                "x + f(x), v, o, fc1, fc2 x 0.67 N^-1/4",
                "A test of initialisation alone: the method has no norm, no gate and no warm-up. Its authors test it "
                "on translation. Touvron et al. (CaiT) report that it does not converge with DeiT's recipe.",
                " If the weights grow, nothing bounds the stream and the logits of attention. In this case bf16 is not "
                "suitable: if the softmax saturates, rounding the operands of products to bf16 changes gradients by as "
                "much as the size of the gradients (the parity check leaves such cases out).");
}

Method methods::t_fixup_ln() {
  return method("t_fixup_ln", Norm::pre, cait_recipe(), Growth::linear, "x + f(LN(x)), v, o, fc1, fc2 x 0.67 N^-1/4",
                "To reproduce the T-Fixup column of table 1 in the CaiT paper, which adds norm and warm-up. Touvron "
                "et al. report for DeiT on ImageNet that this form competes with LayerScale at 12 to 18 blocks, and "
                "that LayerScale is better in deeper networks.");
}

}  // namespace plumb::nn
