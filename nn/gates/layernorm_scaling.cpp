// LayerNorm-Scaling (Sun et al. 2025): x' = x + Attn(LN1(x) / sqrt(l)), y = x' + FFN(LN2(x') / sqrt(l)). l is the index
// of the BLOCK, counted from 1, and the same for both branches, so 1 / sqrt(l) is a constant factor. The final norm is
// not scaled. In the authors' code the method has no effect, because a lower-case name is compared with an upper-case
// name. Plumb implements the form of the paper.
#include <cmath>

#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct ScaledInput : BranchHooks {
  explicit ScaledInput(double s) : scale(s) {}
  Tensor input(const Tensor& x) const override { return x * scale; }
  double scale;
};

class ScaledNormGate : public ScaleGate {
 public:
  explicit ScaledNormGate(const GateContext& c) : factor_(1 / std::sqrt(static_cast<double>(c.block + 1))) {}
  std::unique_ptr<BranchHooks> inside(Stream&) const override { return std::make_unique<ScaledInput>(factor_); }

 private:
  double factor_;
};

}  // namespace

Method methods::layernorm_scaling() {
  return {.name = "layernorm_scaling",
          .norm = Norm::pre,
          .growth = Growth::harmonic,
          .formula = "x + f(LN(x) / sqrt(l)), l = 1..N",
          .source = "Sun et al. 2025, The curse of depth in large language models",
          .counts = "l: index of the block from 1",
          .use =
              "Pre-norm in which the mean square of the stream grows, at initialisation, like the logarithm of the "
              "depth instead of linearly. Sun et al. report for language models of 1B parameters a perplexity of "
              "15.71 against 17.02 of pre-norm (quoted from a secondary text). With rates tuned for each method, the "
              "authors of ProRes (arXiv 2603.05369) report 9.93 against 10.32 at 1.3B (C4).",
          .pitfalls = "Do not combine `layernorm_scaling` with scaled last layers (gpt2_init).",
          .build = gates_from<ScaledNormGate>};
}

}  // namespace plumb::nn
