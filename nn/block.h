// The residual block of a transformer: two branches, each joined to the stream by a gate.
#pragma once

#include <memory>

#include "nn/gates/gate.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

// Makes the attention of a block; the options hold width, heads, init and this block's rates.
using AttentionFactory = std::function<std::unique_ptr<Branch>(const AttentionOptions&)>;
template <class A>
std::unique_ptr<Branch> make_attention(const AttentionOptions& options) {
  return std::make_unique<A>(options);
}

struct BlockOptions {
  std::int64_t dim, heads, hidden;
  GateChoice gate;             // the residual method
  std::int64_t block, blocks;  // index, and how many there are
  double norm_eps = 1e-6;
  std::optional<Recipe> recipe = {};  // base and scalar_rate count; recipe_of() if not given
  AttentionOptions drop = {.dim = 0,
                           .heads = 0};  // this block's rates of dropping in attention; the other fields are not read
  double drop_path = 0;
  DropPathForm drop_path_form = DropPathForm::rescaled;
  AttentionFactory attention = make_attention<Attention>;
};

// A junction as it happened in a forward pass: what an observer of signal propagation looks at.
struct Junction {
  std::int64_t block;
  const Branch& branch;
  const Gate& gate;
  Norm norm;            // where the block's norm sits
  Tensor stream;        // x, the skip input
  Tensor joined;        // after the gate, before a post-norm
  Tensor branch_value;  // f, before its gate, without a graph; where the gate is fused, made again for the observer:
                        // one product more
  Tensor output;        // after gate and post-norm
};

// x [B, T, D] -> [B, T, D]; parameters norm1, attn, norm2, mlp and the method's own. A method whose gate starts at 0
// and whose branch ends in a layer that starts at 0 is refused: neither would ever get a gradient.
class Block : public Layer {
 public:
  explicit Block(const BlockOptions& options);

  // The stream after this block: what a stack of blocks calls. operator() is the same for a block alone, opened and
  // closed by its method.
  void advance(Stream& stream) const;

  // Called at each junction of each forward pass while the handle lives.
  using Observer = std::function<void(const Junction&)>;
  [[nodiscard("the observer is gone with its handle: keep it")]] Handle observe(Observer observer);

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
  std::unique_ptr<Layer> norm1_, norm2_;  // null if the block has none
  std::unique_ptr<Branch> attn_;
  Mlp mlp_;
  DropPath drop1_, drop2_;
  mutable Stream* stream_ = nullptr;  // during advance()
  std::shared_ptr<std::map<int, Observer>> observers_ = std::make_shared<std::map<int, Observer>>();
};

}  // namespace plumb::nn
