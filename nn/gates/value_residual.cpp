// Value residual (ResFormer, Zhou et al. 2024): pre-norm in which the values of every block but the first are v_l <- c1
// v_1 + c2 v_l, before the heads are split. c1 and c2 are learned, with the initial value 0.5. v_1 keeps its graph, so
// the gradient of v_1 is a sum over all blocks. The authors' variants are not implemented: fixed c, SVFormer (v_l =
// v_1) and NeuTRENO (adds 0.4 (v_1 - v_l) to the output).
#include <algorithm>

#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct KeepValues : BranchHooks {
  explicit KeepValues(Stream& s) : stream(s) {}
  Tensor projected(const Tensor& qkv) const override {
    stream.carried = {slice(qkv, -1, qkv.dim(-1) / 3 * 2, qkv.dim(-1))};
    return qkv;
  }
  Stream& stream;
};

struct MixValues : BranchHooks {
  MixValues(const Tensor& first_values, const Tensor& l) : first(first_values), lambdas(l) {}
  Tensor projected(const Tensor& qkv) const override {
    const std::int64_t D = qkv.dim(-1) / 3;
    const Tensor values = slice(lambdas, 0, 0, 1) * first + slice(lambdas, 0, 1, 2) * slice(qkv, -1, 2 * D, 3 * D);
    return concat({slice(qkv, -1, 0, 2 * D), values}, -1);
  }
  const Tensor &first, &lambdas;
};

struct FirstGate : ScaleGate {
  std::unique_ptr<BranchHooks> inside(Stream& s) const override { return std::make_unique<KeepValues>(s); }
};

class LaterGate : public ScaleGate {
 public:
  LaterGate() : lambdas_(parameter("lambdas", {2}, Init::constant(0.5), Role::gate)) {}
  std::unique_ptr<BranchHooks> inside(Stream& s) const override {
    check(!s.carried.empty(),
          "[value_residual] expected a stream with the values of the first block, got none: run the blocks in a Stack");
    return std::make_unique<MixValues>(s.carried[0], lambdas_);
  }

 private:
  Tensor lambdas_;
};

}  // namespace

Method methods::value_residual() {
  return {.name = "value_residual",
          .norm = Norm::pre,
          .formula = "x + f(LN(x)), v_l = c1 v_1 + c2 v_l, c = 0.5",
          .source = "Zhou et al. 2024, Value residual learning",
          .use = "All blocks can use the values of the first block, for two scalars per block.",
          .pitfalls = "The values of the first block stay in memory for the whole pass.",
          .build = [](const GateContext& c) {
            c.require_tokens("value_residual");
            return gate_per_junction(c, [](const GateContext& at) -> std::unique_ptr<Gate> {
              if (at.branch().kind != "attn") return std::make_unique<ScaleGate>();
              const auto first = std::ranges::find(at.branches, "attn", &BranchShape::kind) - at.branches.begin();
              if (at.block == 0 && at.junction == first) return std::make_unique<FirstGate>();
              return std::make_unique<LaterGate>();
            });
          }};
}

}  // namespace plumb::nn
