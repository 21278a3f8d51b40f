// Gates and hooks for methods with a norm inside a branch or after a branch.
#pragma once

#include "nn/gates/gate_forms.h"
#include "nn/gates/method.h"

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

// The name under which a block registers a norm, and the width of the norm.
struct NormSite {
  std::string name;
  std::int64_t width;
};
// Builds a gate for each junction of the block, each with its own norm. `site` gets the GateContext of a junction and
// returns the NormSite of its norm; `make` gets the GateContext and the norm, and returns a unique_ptr to the gate.
template <class Site, class Make>
BlockGates gates_with_norms(const GateContext& context, Site site, Make make) {
  std::vector<std::pair<std::string, std::unique_ptr<Layer>>> norms;
  BlockGates gates = gate_per_junction(context, [&](const GateContext& c) {
    const NormSite of_junction = site(c);
    norms.emplace_back(of_junction.name, c.norm(of_junction.width));
    return make(c, *norms.back().second);
  });
  for (auto& [name, norm] : norms) gates.add(name, std::move(norm));
  return gates;
}

}  // namespace plumb::nn
