// The residual block of a transformer: two branches, attention and MLP, each joined to the stream by a gate.
#pragma once

#include <memory>

#include "nn/gates/gate.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Makes the attention of a block. The options hold width, heads, init and the drop rates of this block.
using AttentionFactory = std::function<std::unique_ptr<Branch>(const AttentionOptions&)>;
template <class A>
std::unique_ptr<Branch> make_attention(const AttentionOptions& options) {
  return std::make_unique<A>(options);
}

// Options of a Block.
struct BlockOptions {
  std::int64_t dim, heads, hidden;
  GateChoice gate;             // the residual method
  std::int64_t block, blocks;  // index of the block from 0, and number of blocks
  double norm_eps = 1e-6;
  // The training recipe, of which a block uses base and scalar_rate. If not given, recipe_of() chooses it.
  std::optional<Recipe> recipe = {};
  // The drop rates of this block's attention. The block sets dim, heads and init itself.
  AttentionOptions drop = {.dim = 0, .heads = 0};
  double drop_path = 0;
  DropPathForm drop_path_form = DropPathForm::rescaled;
  AttentionFactory attention = make_attention<Attention>;
};

// One residual junction of a forward pass, for observers of signal propagation.
struct Junction {
  // Index of the block, the branch and its gate.
  std::int64_t block;
  const Branch& branch;
  const Gate& gate;
  Norm norm;      // where the block's norm is
  Tensor stream;  // x, the skip input
  Tensor joined;  // the result of the gate, before a post-norm
  // f, the value of the branch before the gate, without a graph. If the gate is fused with the last product of the
  // branch, that product is computed a second time for the observer.
  Tensor branch_value;
  Tensor output;  // the stream after gate and post-norm
};

// Maps x [B, T, D] to [B, T, D]. Parameters: norm1, attn, norm2, mlp, and those of the method. The constructor throws
// Error if the gate starts at 0 and the last layer of the branch starts at 0 too, because neither would ever get a
// gradient.
class Block : public Layer {
 public:
  explicit Block(const BlockOptions& options);

  // Advances the stream by this block. A stack of blocks calls this. operator() does the same for a single block: it
  // opens and closes the stream as the method does.
  void advance(Stream& stream) const;

  // Calls `observer` at each junction of each forward pass, as long as the handle lives. Passes of calibrate() and
  // repeated passes of checkpoint() are left out. Throws Error for an empty function.
  using Observer = std::function<void(const Junction&)>;
  [[nodiscard("the observer is removed when its handle is destroyed: keep the handle")]] Handle observe(
      Observer observer);

  // The two branches, and the place of the block's norms.
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
  mutable Stream* stream_ = nullptr;  // set during advance()
  std::shared_ptr<std::map<int, Observer>> observers_ = std::make_shared<std::map<int, Observer>>();
};

}  // namespace plumb::nn
