// DeepNorm (Wang et al. 2022): y = LN(alpha x + f(x)) at each branch, with the constant alpha = (2N)^(1/4), for N
// blocks of an encoder. The initial weights W_v, W_o, fc1 and fc2 are multiplied by beta = (8N)^(-1/4); W_q and W_k are
// not scaled. The paper's base initialisation is Xavier normal. The paper has no final norm, but Plumb's models end in
// a norm. The encoder-decoder forms have other constants and are not implemented.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate_forms.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class DeepNormGate : public SkipScaleGate {
 public:
  DeepNormGate(double alpha, double beta) : SkipScaleGate(full({1}, alpha)), beta_(beta) {}
  void init_branch(Branch& branch) override { branch.scale_value_path(beta_); }

 private:
  double beta_;
};

}  // namespace

double deepnorm_alpha(std::int64_t branches) { return std::pow(static_cast<double>(branches), 0.25); }
double deepnorm_beta(std::int64_t branches) { return std::pow(4.0 * static_cast<double>(branches), -0.25); }

Method methods::deepnorm(std::optional<double> alpha) {
  Method m{.name = "deepnorm",
           .norm = Norm::post,
           .formula = "LN(a x + f(x)), a = (2N)^1/4, v, o, fc1, fc2 x (8N)^-1/4",
           .source = "Wang et al. 2022, DeepNet: scaling transformers to 1,000 layers",
           .counts = "N blocks",
           .use =
               "Post-norm for deep networks, with warm-up and without additional parameters. The abstract of the "
               "paper reports a transformer of 1,000 layers (quoted from a secondary text). For vision, the authors "
               "report that sub_ln works better (microsoft/torchscale, issue 14).",
           .pitfalls =
               "N counts blocks; counting branches instead changes alpha by 19 %. Some published comparisons used an "
               "inverted factor or a fixed alpha.",
           .build = [](const GateContext& c) {
             return gates_from<DeepNormGate>(c, c.constant("alpha", deepnorm_alpha(c.count())),
                                             deepnorm_beta(c.count()));
           }};
  m.paper = {.base = Base::xavier_normal,
             .warmup = 5.0 / 300,
             .source = "Wang et al. 2022: Glorot normal, warm-up; the share of steps here is DeiT's"};
  m.constants = {{.name = "alpha", .meaning = "factor of the skip; by depth: (2N)^1/4"}};
  return m.with({{"alpha", alpha}});
}

}  // namespace plumb::nn
