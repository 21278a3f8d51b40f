// T-Fixup (Huang et al. 2020): plain x + f(x); no norm, no warm-up, no gate: initialisation alone. N = blocks of the
// stack. Encoder: W_v, W_o, fc1, fc2 x 0.67 N^(-1/4); W_q, W_k keep Xavier. (Decoder: (9N)^(-1/4), embeddings too.) The
// authors' code starts q, k, v at Xavier gain 1/sqrt(2) and undoes that for v alone, so its q and k are sqrt(2) smaller
// than ours. It has token embeddings, which its decoder scales; our patch embedding is left alone. No final norm there;
// our trunk ends in one for every method. `t_fixup_ln` puts pre-norm back, as CaiT compared it.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class TFixupGate : public ScaleGate {
 public:
  explicit TFixupGate(const GateContext& c) : factor_(t_fixup_factor(c.blocks)) {}
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
          .pitfalls = "Encoder-only use was never specified by the authors: this is the encoder's factor." + pitfalls,
          .build = gate_per_branch<TFixupGate>};
}

}  // namespace

double t_fixup_factor(std::int64_t blocks) { return 0.67 * std::pow(static_cast<double>(blocks), -0.25); }

double t_fixup_decoder_factor(std::int64_t blocks) { return std::pow(9.0 * static_cast<double>(blocks), -0.25); }

Method methods::t_fixup() {
  return method("t_fixup", Norm::none,
                {.base = Base::xavier, .source = "Huang et al. 2020: Glorot uniform, no warm-up"}, Growth::geometric,
                "x + f(x), v, o, fc1, fc2 x 0.67 N^-1/4",
                "How far initialisation alone goes: no norm, no gate, no warm-up.",
                " Nothing bounds the stream once weights grow, and with it the logits of attention. bf16 does not "
                "serve it there: where softmax saturates, "
                "rounding the operands of products to bf16 alone changes gradients by as much as they are (parity does "
                "not judge such cases).");
}

Method methods::t_fixup_ln() {
  return method("t_fixup_ln", Norm::pre, cait_recipe(), Growth::linear, "x + f(LN(x)), v, o, fc1, fc2 x 0.67 N^-1/4",
                "The T-Fixup column of CaiT's table 1: norm and warm-up put back.");
}

}  // namespace plumb::nn
