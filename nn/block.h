// The residual block of a transformer: two branches, each joined to the stream by a gate.
#pragma once

#include <memory>
#include <optional>

#include "nn/gates/gate.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_path.h"
#include "nn/layers/mlp.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

struct BlockOptions {
  std::int64_t dim, heads, hidden;
  std::string gate;            // name of the residual method
  std::int64_t block, blocks;  // index, and how many there are
  double norm_eps = 1e-6;
  Base base = Base::truncated_normal;
  double drop_key = 0, attention_dropout = 0, drop_path = 0;  // rates of this block
  EmptyRow empty = EmptyRow::keep_all;
};

// A junction as it happened in a forward pass: what an observer of signal propagation looks at.
struct Junction {
  std::int64_t block;
  const Branch& branch;
  const Gate& gate;
  Tensor stream;        // x, the skip input
  Tensor branch_value;  // f, before its gate
  Tensor output;        // after gate and post-norm
};

// x [B, T, D] -> [B, T, D]; parameters norm1, attn, norm2, mlp and the method's own.
class Block : public Layer {
 public:
  explicit Block(const BlockOptions& options);

  // Called at each junction of each forward pass while the handle lives.
  using Observer = std::function<void(const Junction&)>;
  Handle observe(Observer observer);

  Branch& attn() { return attn_; }
  Branch& mlp() { return mlp_; }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor join(const Tensor& x, const Branch& branch, const std::optional<LayerNorm>& norm, const Gate& gate, const DropPath& drop) const;

  std::int64_t index_;
  Norm placement_;
  std::optional<LayerNorm> norm1_, norm2_;
  Attention attn_;
  Mlp mlp_;
  DropPath drop1_, drop2_;
  BlockGates gates_;
  std::shared_ptr<std::map<int, Observer>> observers_ = std::make_shared<std::map<int, Observer>>();
};

}  // namespace plumb::nn
