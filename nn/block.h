// The residual block of a transformer: two branches, attention and MLP, each joined to the stream by a gate.
#pragma once

#include <memory>

#include "nn/gates/gate.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Makes the attention layer of a block. The options hold the width, the number of heads, the init and the drop rates of
// this block.
using AttentionFactory = std::function<std::unique_ptr<Branch>(const AttentionOptions&)>;
template <class A>
std::unique_ptr<Branch> make_attention(const AttentionOptions& options) {
  return std::make_unique<A>(options);
}

// Options of a Block.
struct BlockOptions {
  std::int64_t dim, heads, hidden;
  GateChoice gate;             // the residual method
  std::int64_t block, blocks;  // `block`: index of the block, from 0. `blocks`: number of blocks.
  double norm_eps = 1e-6;
  // The training recipe. A block uses `base` and `scalar_rate` only. If the recipe is not given, recipe_of() chooses
  // the recipe.
  std::optional<Recipe> recipe = {};
  // The drop rates of this block's attention. The block overwrites dim, heads and init.
  AttentionOptions drop = {.dim = 0, .heads = 0};
  double drop_path = 0;
  DropPathForm drop_path_form = DropPathForm::rescaled;
  AttentionFactory attention = make_attention<Attention>;
};

// One residual junction of a forward pass, for observers of signal propagation.
struct Junction {
  // The index of the block, the branch, and the gate of the branch.
  std::int64_t block;
  const Branch& branch;
  const Gate& gate;
  Norm norm;      // the place of the block's norm
  Tensor stream;  // x, the skip input
  Tensor joined;  // the result of the gate, before the norm if the norm is post
  // f: the value of the branch before the gate, without a graph. If the gate is fused with the last product of the
  // branch, this product is computed a second time for the observer.
  Tensor branch_value;
  Tensor output;  // the stream after the gate and, if the norm is post, after the norm
};

// Maps x [B, T, D] to [B, T, D]. The parameters are norm1, attn, norm2, mlp, and the parameters of the method. If the
// initial values of a gate and of the last layer of its branch are both 0, the constructor throws Error, because gate
// and branch would never get a gradient.
class Block : public Layer {
 public:
  explicit Block(const BlockOptions& options);

  // Advances the stream by this block. Stack calls advance() for each of its blocks. operator() is for a single block:
  // operator() opens the stream, advances the stream and closes the stream, as the method prescribes.
  void advance(Stream& stream) const;

  // Calls `observer` at each junction of each forward pass, as long as the handle lives. The observer is not called in
  // passes of calibrate() and in repeated passes of checkpoint(). Throws Error for an empty function.
  using Observer = std::function<void(const Junction&)>;
  [[nodiscard("the observer is removed when its handle is destroyed: keep the handle")]] Handle observe(
      Observer observer);

  // Return the two branches, and the place of the block's norms.
  Branch& attn() { return *attn_; }
  Branch& mlp() { return mlp_; }
  Norm norm() const { return norm_; }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  void pass(Stream& s, const Branch& branch, const Gate& gate, const Layer* norm, const DropPath& drop) const;

  std::int64_t index_;
  GateChoice method_;
  BlockGates gates_;
  Norm norm_;
  std::unique_ptr<Layer> norm1_, norm2_;  // null if the block has no norm
  std::unique_ptr<Branch> attn_;
  Mlp mlp_;
  DropPath drop1_, drop2_;
  mutable Stream* stream_ = nullptr;  // not null during advance()
  std::shared_ptr<std::map<int, Observer>> observers_ = std::make_shared<std::map<int, Observer>>();
};

}  // namespace plumb::nn
