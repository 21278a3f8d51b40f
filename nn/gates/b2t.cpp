// B2T, bottom-to-top connection (Takase et al. 2022): m = LN1(x + Attn(x)), y = LN2(m + FFN(m) + x). This is post-norm
// with a connection around LN1. The method has no constants. The paper keeps the warm-up of post-norm.
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct Sum : Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return gated_residual(skip, branch); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, branch, {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
};

struct FromBottom : Sum {  // keeps x for the gate ToTop
  void join(Stream& s, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const override {
    s.carried = {s.x};
    Gate::join(s, branch, row_scale, norm);
  }
};

struct ToTop : Sum {
  void join(Stream& s, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const override {
    s.x = (*norm)(mix(s.x, branch, row_scale) + s.carried[0]);
    s.carried.clear();
  }
};

}  // namespace

Method methods::b2t() {
  return {.name = "b2t",
          .norm = Norm::post,
          .paper = {.base = Base::xavier,
                    .warmup = 4000.0 / 100'000,
                    .source = "Takase et al. 2022: the recipe of post-norm, Vaswani et al. 2017"},
          .formula = "m = LN(x + f1(x)), y = LN(m + f2(m) + x)",
          .source = "Takase et al. 2022, B2T connection: serving stability and performance in deep transformers",
          .use =
              "Post-norm in which the input of a block also reaches the second norm directly. On this path, the skip "
              "passes one norm per block instead of two. The method adds no parameters.",
          .pitfalls = "The paper keeps the warm-up of post-norm.",
          .build = [](const GateContext& c) {
            c.require(c.junctions >= 2, "[b2t] expected blocks of at least two branches, got {}", c.junctions);
            return gate_per_junction(c, [](const GateContext& at) -> std::unique_ptr<Gate> {
              if (at.junction == 0) return std::make_unique<FromBottom>();
              if (at.junction + 1 == at.junctions) return std::make_unique<ToTop>();
              return std::make_unique<Sum>();
            });
          }};
}

}  // namespace plumb::nn
