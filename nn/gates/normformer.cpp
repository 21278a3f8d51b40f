// NormFormer (Shleifer et al. 2021) is pre-norm with four additions: a factor c [heads], initially 1, for each head
// before W_o; a norm between attention and residual sum; a norm between the activation and fc2; a factor w [D],
// initially 1, of the skip (not the branch) at the MLP. The authors' code computes another function: the code applies c
// to the output of W_o, split into heads. Plumb implements the form of the paper. The paper treats decoders only.
#include "nn/gates/gate.h"
#include "nn/gates/inner_norm.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct HeadScale : BranchHooks {
  explicit HeadScale(const Tensor& s) : scale(s) {}
  Tensor hidden(const Tensor& h) const override {
    const Shape split{h.dim(0), h.dim(1), scale.numel(), h.dim(2) / scale.numel()};
    return reshape(reshape(h, split) * reshape(scale, {scale.numel(), 1}), h.shape());
  }
  const Tensor& scale;
};

class AttentionGate : public NormAfter {
 public:
  AttentionGate(const Layer& norm, const GateContext& c)
      : NormAfter(norm), head_scale_(parameter("head_scale", {c.branch().heads}, Init::constant(1), Role::gate)) {}
  std::unique_ptr<BranchHooks> inside(Stream&) const override { return std::make_unique<HeadScale>(head_scale_); }

 private:
  Tensor head_scale_;
};

class MlpGate : public SkipScaleGate {
 public:
  MlpGate(const Layer& norm, const GateContext& c) : norm_(norm) {
    scale_ = parameter("residual_scale", {c.dim}, Init::constant(1), Role::gate);
  }
  std::unique_ptr<BranchHooks> inside(Stream&) const override { return std::make_unique<InnerNorm>(norm_); }

 private:
  const Layer& norm_;
};

}  // namespace

Method methods::normformer() {
  return {.name = "normformer",
          .norm = Norm::pre,
          .formula = "x + LN(f1(LN(x))), w * x + W LN(f2'(LN(x))), head scales c",
          .source = "Shleifer et al. 2021, NormFormer: improved transformer pretraining with extra normalization",
          .use =
              "Pre-norm with two more norms in each block, and scales of the heads and of one skip. The abstract of "
              "the paper reports that a language model of 1.3B parameters reaches the same perplexity 24 % faster, "
              "with 0.4 % more parameters (quoted from a secondary text).",
          .pitfalls = "The head scales act before W_o. w multiplies the skip, not the branch.",
          .build = [](const GateContext& c) {
            c.require_tokens("normformer");
            return gates_with_norms(
                c,
                [](const GateContext& at) {
                  return NormSite{at.branch().name + "_norm", at.branch().heads > 0 ? at.dim : at.branch().hidden};
                },
                [](const GateContext& at, const Layer& norm) -> std::unique_ptr<Gate> {
                  if (at.branch().heads > 0) return std::make_unique<AttentionGate>(norm, at);
                  return std::make_unique<MlpGate>(norm, at);
                });
          }};
}

}  // namespace plumb::nn
