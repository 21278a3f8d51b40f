// The gate interface: how a residual method joins a branch to the stream.
//
// The block owns the formula (nn/block.cpp):
//   u = norm(x) if the method's norm is pre, else x;  f = branch(u);  y = gate.combine(x, f);  y = norm(y) if it is post.
// A gate supplies combine, and, where its paper asks for it, how the branch's weights start and what happens inside the branch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/branch.h"

namespace plumb::nn {

class Gate : public Module {
 public:
  Gate() : Module("Gate") {}

  // skip, branch [B, T, D] -> the stream after the junction.
  virtual Tensor combine(const Tensor& skip, const Tensor& branch) const = 0;
  // The same with each sample's branch multiplied by row_scale [B] first (stochastic depth).
  virtual Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const;

  // Changes how the branch's weights start: scales their declared Init. Called once, before the model is initialised.
  virtual void init_branch(Branch&) {}
  // What the method does inside the branch; null leaves it its fused path.
  virtual const Inside* inside() const { return nullptr; }
};

// y = skip + scale * branch, fused: scale [1], [D], or undefined for a plain sum.
class ScaleGate : public Gate {
 public:
  explicit ScaleGate(Tensor scale = {}) : scale_(std::move(scale)) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return gated_residual(skip, branch, scale_); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, branch, scale_, row_scale);
  }

 protected:
  Tensor scale_;
};

enum class Norm { none, pre, post };

// What a method promises about a freshly initialised network; tested for every registered method.
enum class Claim {
  identity_at_init,      // every block is the identity
  zero_branch_gradient,  // weights inside branches get gradient 0 in the first step
  loss_is_log_classes    // all logits are 0, so cross-entropy is ln(classes)
};

// Base distribution of the weights before a method scales them (the patch embedding's is the same in all: fan_in_uniform).
enum class Base {
  truncated_normal,  // std 0.02: ViT, DeiT; what all methods share unless a run asks for each paper's own
  xavier,            // Glorot uniform, q, k, v as three matrices
  xavier_packed      // Glorot uniform of the packed qkv matrix
};
Init weight_init(Base base, int packed_parts = 1);

// Where a gate is being built.
struct GateContext {
  std::int64_t dim, heads;
  std::int64_t block, blocks;  // index of the block, number of blocks (a block is attention and MLP)
};

// A block's gates and whatever else the method keeps in the block, under the names they get there.
struct BlockGates {
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules;
  Gate* attn = nullptr;  // each one of the modules; one gate may serve both branches
  Gate* mlp = nullptr;
};

// A row of the table of residual methods.
struct Method {
  Norm norm = Norm::pre;
  std::vector<Claim> claims = {};
  bool zero_head = false;  // the classifier starts at 0
  Base paper_base = Base::truncated_normal;
  std::string formula = {};  // one line, for lists and reports
  std::string source = {};   // paper
  std::function<BlockGates(const GateContext&)> build = {};
};

// Two gates of type G a block, gate1 for attention and gate2 for the MLP; G is made from a GateContext or from nothing.
template <class G>
BlockGates gate_per_branch(const GateContext& context) {
  const auto make = [&] {
    if constexpr (std::is_constructible_v<G, const GateContext&>)
      return std::make_unique<G>(context);
    else
      return std::make_unique<G>();
  };
  auto attn = make();
  auto mlp = make();
  BlockGates gates{.modules = {}, .attn = attn.get(), .mlp = mlp.get()};
  gates.modules.emplace_back("gate1", std::move(attn));
  gates.modules.emplace_back("gate2", std::move(mlp));
  return gates;
}

// Adds a method under a new name: from then on it is in --gates, in every experiment and in the reports.
void register_method(const std::string& name, Method method);
template <class G>
void register_gate(const std::string& name, Method method = {}) {
  method.build = gate_per_branch<G>;
  register_method(name, std::move(method));
}

std::vector<std::string> gate_names();                // in table order, registered ones last
const Method& method_named(const std::string& name);  // throws, listing the names, for an unknown one

}  // namespace plumb::nn
