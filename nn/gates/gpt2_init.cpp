// GPT-2's scaled init (Radford et al. 2019): pre-norm in which the initial weights of the two projections into the
// stream, W_o and fc2, are multiplied by (2N)^(-1/2), with N blocks. Only the initial values change; these weights can
// grow again in training. Before the scaling, all weights are drawn from N(0, 0.02); biases have the initial value 0.
#include <cmath>

#include "nn/gates/factors.h"
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class Gpt2Gate : public ScaleGate {
 public:
  explicit Gpt2Gate(const GateContext& c) : factor_(gpt2_factor(c.count())) {}
  void init_branch(Branch& branch) override { branch.last().scale_init(factor_); }

 private:
  double factor_;
};

}  // namespace

double gpt2_factor(std::int64_t branches) { return 1 / std::sqrt(static_cast<double>(branches)); }

Method methods::gpt2_init() {
  return {.name = "gpt2_init",
          .norm = Norm::pre,
          .formula = "x + f(LN(x)), o, fc2 x (2N)^-1/2",
          .source = "Radford et al. 2019, Language models are unsupervised multitask learners",
          .counts = "L = 2N branches",
          .use =
              "A change of the initial weights only: at initialisation, all branches together add as much mean "
              "square to the stream as a single branch of pre-norm. With rates tuned for each method, the authors of "
              "ProRes (arXiv 2603.05369) report for language models on C4 a perplexity close to that of pre-norm: "
              "14.63 against 14.67 at 130M parameters, 10.30 against 10.32 at 1.3B.",
          .pitfalls = "Do not combine `gpt2_init` with LayerNorm-Scaling or a depth multiplier.",
          .build = gates_from<Gpt2Gate>};
}

}  // namespace plumb::nn
