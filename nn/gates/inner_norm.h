// Gates and hooks for methods with a norm inside a branch or after a branch.
#pragma once

#include "nn/gates/gate.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Applies a norm before the last linear layer of a branch.
struct InnerNorm : BranchHooks {
  explicit InnerNorm(const Layer& n) : norm(n) {}
  Tensor hidden(const Tensor& h) const override { return norm(h); }
  const Layer& norm;
};

// The gate y = x + norm(f), where f is the value of the branch.
class NormAfter : public AfterGate {
 public:
  explicit NormAfter(const Layer& norm) : norm_(norm) {}
  Tensor after(const Tensor& branch) const override { return norm_(branch); }

 private:
  const Layer& norm_;
};

// Builds the gates gate1 and gate2 of a block, each with its own norm. An AttnGate is constructed from a norm of width
// c.dim and `arguments`; an MlpGate is constructed from a norm of width mlp_width and `arguments`. The block registers
// the norms under the names in attn_norm and mlp_norm.
template <class AttnGate, class MlpGate, class... Arguments>
BlockGates gates_with_norms(const GateContext& c, const char* attn_norm, const char* mlp_norm, std::int64_t mlp_width,
                            const Arguments&... arguments) {
  BlockGates gates;
  auto norm1 = std::make_unique<LayerNorm>(c.dim, c.norm_eps),
       norm2 = std::make_unique<LayerNorm>(mlp_width, c.norm_eps);
  gates.attn = &gates.add("gate1", std::make_unique<AttnGate>(*norm1, arguments...));
  gates.mlp = &gates.add("gate2", std::make_unique<MlpGate>(*norm2, arguments...));
  gates.add(attn_norm, std::move(norm1));
  gates.add(mlp_norm, std::move(norm2));
  return gates;
}

}  // namespace plumb::nn
