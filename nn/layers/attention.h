// Multi-head self-attention: the options, the base class of all forms, and the plain form.
#pragma once

#include "autograd/ops.h"
#include "nn/layers/branch.h"
#include "nn/layers/drop_key.h"
#include "nn/layers/dropout.h"

namespace plumb::nn {

// Options of DropHead in a network.
struct DropHeadOptions {
  double rate = 0;
  // The number of training steps over which the rate falls to 0 and rises again (drop_head_rate()). With 0, the rate is
  // constant.
  std::int64_t steps = 0;
};

// Options of an attention layer.
struct AttentionOptions {
  std::int64_t dim = 0, heads = 0;
  DropKey drop_key = {};  // DropKey with the rate of this layer
  KeyGrid grid = {};   // the grid of the patches, which are the last tokens; DropKey's structured shapes need the grid
  double dropout = 0;  // probability with which dropout sets an attention probability to 0
  double drop_head = 0;  // rate of DropHead, in [0, 1)
  // The number of training steps over which the rate of DropHead follows drop_head_rate(). With 0, the rate is
  // constant.
  std::int64_t drop_head_steps = 0;
  Init init = Init::truncated_normal(0.02);  // the init of all weights
  bool qkv_bias = true;                      // whether q, k and v have a bias; proj always has a bias
  double proj_drop = 0;                      // probability of dropout after proj, with the bounds of dropout()
  bool causal = false;                       // whether a token attends only to itself and the tokens before it

  // Returns these options with DropKey's rate converted by by_rate(). Throws Error for invalid options. The message
  // begins with `op`.
  AttentionOptions resolved(const char* op) const;
  // Returns the options of the attention op for one pass. If `training` is false, these options turn off DropKey and
  // dropout.
  plumb::AttentionOptions call(bool training) const;
  // Applies DropHead to the output of the heads, [B, T, D], in which the heads are next to each other. If `training` is
  // false, returns `heads` unchanged.
  Tensor drop_heads(const Tensor& heads, bool training) const;
};

// Base class of self-attention layers, x [B, T, D] -> [B, T, D]. Parameters: qkv packs q, k and v in this order, with
// weight [3D, D]; proj has weight [D, D]. proj has a bias, and qkv has a bias unless qkv_bias is false. DropKey,
// dropout and DropHead are off in evaluation mode.
class SelfAttention : public Branch {
 public:
  // Returns the shape for residual methods.
  BranchShape shape() const override {
    return {.kind = "attn", .hidden = options_.dim, .heads = options_.heads, .weight_layers = 4};
  }
  // Returns qkv and proj.
  std::vector<WeightLayer*> weight_layers() override { return {&qkv_, &proj_}; }
  void scale_value_path(double factor) override;

  // The options, with DropKey's rate converted by by_rate().
  const AttentionOptions& options() const { return options_; }
  // Switches DropKey, dropout and DropHead in training mode on or off. A new layer has them on.
  void drop_in_attention(bool on) { drops_ = on; }
  // Returns the statistics of the keys that a forward pass on [batch, tokens, D] drops in the current random scope. In
  // evaluation mode, all statistics are 0. The function repeats the draws, which takes time, so call it only at steps
  // that are logged.
  DropKeyStatistics drop_key_statistics(std::int64_t batch, std::int64_t tokens) const;
  // Returns the attention probabilities, [B, heads, T, T], from the output [B, T, 3D] of qkv, without drops (DropKey,
  // dropout, DropHead).
  virtual Tensor probabilities(const Tensor& qkv) const;

 protected:
  // Messages about invalid options begin with `op`.
  SelfAttention(std::string type, const char* op, const AttentionOptions& options);

  // Computes the branch.
  BranchResult forward(const BranchCall& call) const override;
  // Maps the output of qkv [B, T, 3D] to the outputs of the heads, [B, T, D], with the heads next to each other.
  virtual Tensor attend(const Tensor& qkv) const = 0;
  // Returns whether attend() accepts a bf16 `qkv` if products run in bf16.
  virtual bool takes_bf16() const { return false; }
  // Returns whether DropKey, dropout and DropHead act in this pass.
  bool drops() const { return drops_ && training(); }
  // Returns q k^T / sqrt(width of a head), [B, heads, T, T], with -inf for keys that a causal query must not see.
  Tensor scores(const Tensor& qkv) const;

 private:
  AttentionOptions options_;
  Linear qkv_, proj_;
  std::unique_ptr<Dropout> proj_drop_;  // null without dropout
  bool drops_ = true;
};

// Multi-head self-attention (Vaswani et al. 2017). The scores are scaled by head_dim^-1/2.
class Attention : public SelfAttention {
 public:
  explicit Attention(const AttentionOptions& options);

 protected:
  Tensor attend(const Tensor& qkv) const override;
  bool takes_bf16() const override { return options().drop_head == 0; }
};

// Makes a self-attention layer.
using AttentionFactory = std::function<std::unique_ptr<SelfAttention>(const AttentionOptions&)>;
template <class A>
std::unique_ptr<SelfAttention> make_attention(const AttentionOptions& options) {
  return std::make_unique<A>(options);
}
// Returns the choice of self-attention for a junction, under the name "attn". The block sets dim and init, and the rate
// of DropKey follows its schedule over the blocks.
BranchChoice self_attention(const AttentionOptions& options, AttentionFactory make = make_attention<Attention>);

}  // namespace plumb::nn
