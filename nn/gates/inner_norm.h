// What methods with norms inside or behind their branches share.
#pragma once

#include "nn/gates/gate.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// A norm before the last linear of a branch.
struct InnerNorm : BranchHooks {
  explicit InnerNorm(const Layer& n) : norm(n) {}
  Tensor hidden(const Tensor& h) const override { return norm(h); }
  const Layer& norm;
};

// x + norm(f)
class NormAfter : public AfterGate {
 public:
  explicit NormAfter(const Layer& norm) : norm_(norm) {}
  Tensor after(const Tensor& branch) const override { return norm_(branch); }

 private:
  const Layer& norm_;
};

// gate1 and gate2, each with a norm of its own, which the block shows under the given names: AttnGate{norm,
// arguments..}, of width dim, and MlpGate{norm, arguments..}, of width mlp_width.
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
