// Methods with a norm before and after each branch: x' = x + LN(Attn(LN(x))), y = x' + LN(FFN(LN(x'))).
// `sandwich` (CogView, Ding et al. 2021) also multiplies the initial weights W_o and fc2 by (2N)^(-1/2), as in GPT-2.
// Except through eps, this factor has no effect in the forward pass, because a norm follows. `peri_ln` (Kim et al.
// 2025) does not scale these weights, and normalises the embedding: the first block reads x = LN(embedding). The paper
// of Peri-LN finds that results get worse if the gains of the output norms are frozen. The value of a branch does not
// depend on the size of its weights; the mean square of the stream grows by 1 for each branch.
#include "nn/gates/factors.h"
#include "nn/gates/inner_norm.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

class SandwichGate : public NormAfter {
 public:
  SandwichGate(const Layer& norm, double last_factor) : NormAfter(norm), last_factor_(last_factor) {}
  void init_branch(Branch& branch) override { branch.last().scale_init(last_factor_); }

 private:
  double last_factor_;
};

BlockGates build(const GateContext& c, double last_factor) {
  return gates_with_norms(
      c,
      [](const GateContext& at) {
        return NormSite{fmt::format("norm{}_out", at.junction + 1), at.dim};
      },
      [=](const GateContext&, const Layer& norm) { return std::make_unique<SandwichGate>(norm, last_factor); });
}

}  // namespace

Method methods::sandwich() {
  return {.name = "sandwich",
          .norm = Norm::pre,
          .formula = "x + LN(f(LN(x))), o, fc2 x (2N)^-1/2",
          .source = "Ding et al. 2021, CogView: mastering text-to-image generation via transformers",
          .counts = "L = 2N branches",
          .use =
              "The gain of the second norm sets the size of the term that a branch adds, whatever the size of the "
              "branch's weights is. With rates tuned for each method, the authors of ProRes (arXiv 2603.05369) "
              "report for language models on C4 a lower perplexity than that of pre-norm: 14.55 against 14.67 at "
              "130M parameters, 10.16 against 10.32 at 1.3B.",
          .pitfalls =
              "The factor of the last layers has no effect in the forward pass, because a norm follows. The exception "
              "is a tiny output, for which eps matters.",
          .build = [](const GateContext& c) { return build(c, gpt2_factor(c.count())); }};
}

Method methods::peri_ln() {
  return {.name = "peri_ln",
          .norm = Norm::pre,
          .formula = "x + LN(f(LN(x))), x_0 = LN(embedding)",
          .source = "Kim et al. 2025, Peri-LN: revisiting layer normalization in the transformer architecture",
          .use =
              "Like sandwich, but without scaling the last layers. Kim et al. report a higher average over "
              "benchmarks than that of pre-norm for language models: 51.57 against 49.69 at 400M parameters, 58.56 "
              "against 56.69 at 3.2B (quoted from a secondary text).",
          .pitfalls =
              "At initialisation, each branch adds a mean square of 1, however small the weights of the branch are. A "
              "pre-norm branch whose weights have std 0.02 adds much less. The first steps therefore learn little: in "
              "our ViTs of 6 and 12 blocks, the loss stays near chance for hundreds of steps.",
          .constants = {{.name = "embedding_norm",
                         .standard = 1,
                         .least = 0,
                         .most = 1,
                         .whole = true,
                         .affects = Affects::parameters,
                         .meaning = "1: a norm precedes the first block; 0: none does"}},
          .build = [](const GateContext& c) { return build(c, 1); },
          .embedding_norm = true,
          .follow = [](Method& m) { m.embedding_norm = *m.value("embedding_norm") != 0; }};
}

}  // namespace plumb::nn
