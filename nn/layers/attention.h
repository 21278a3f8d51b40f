#pragma once

#include "autograd/ops.h"
#include "nn/branch.h"
#include "nn/drop_key.h"

namespace plumb::nn {

struct AttentionOptions {
  std::int64_t dim, heads;
  DropKey drop_key = {};                     // its rate is this layer's
  KeyGrid grid = {};                         // of the patches, the last tokens; asked for by DropKey's structured shapes
  double dropout = 0;                        // of the attention probabilities
  double drop_head = 0;                      // DropHead's rate, [0, 1)
  std::int64_t drop_head_steps = 0;          // of training, over which that rate follows drop_head_rate; 0: constant
  Init init = Init::truncated_normal(0.02);  // of both weights

  void check_values(const char* op) const;                      // throws for what no attention can be
  plumb::AttentionOptions call(bool training) const;            // the op's options of one pass
  Tensor drop_heads(const Tensor& heads, bool training) const;  // DropHead on the output [B, T, D], heads side by side
};

// Multi-head self-attention (Vaswani et al. 2017): x [B, T, D] -> [B, T, D]. qkv packs q, k, v in this order (weight [3D, D]), proj
// [D, D]; both with bias; scores are scaled by head_dim^-1/2. DropKey, dropout and DropHead are off in evaluation.
class Attention : public Branch {
 public:
  explicit Attention(const AttentionOptions& options);

  const char* kind() const override { return "attn"; }
  Linear& first() override { return qkv_; }
  Linear& last() override { return proj_; }
  void scale_value_path(double factor) override;

  const AttentionOptions& options() const { return options_; }
  // What a forward pass on [batch, tokens, D] drops, or dropped, in the random scope that is open now: to be asked for at the steps that
  // are logged. Zeros in evaluation.
  DropKeyStatistics drop_key_statistics(std::int64_t batch, std::int64_t tokens) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  AttentionOptions options_;
  Linear qkv_, proj_;
};

}  // namespace plumb::nn
