#pragma once

#include "autograd/ops.h"
#include "nn/branch.h"
#include "nn/drop_key.h"
#include "nn/layers/dropout.h"

namespace plumb::nn {

struct AttentionOptions {
  std::int64_t dim, heads;
  DropKey drop_key = {};             // its rate is this layer's
  KeyGrid grid = {};                 // of the patches, the last tokens; asked for by DropKey's structured shapes
  double dropout = 0;                // of the attention probabilities
  double drop_head = 0;              // DropHead's rate, [0, 1)
  std::int64_t drop_head_steps = 0;  // of training, over which that rate follows drop_head_rate; 0: constant
  Init init = Init::truncated_normal(0.02);  // of all weights
  bool qkv_bias = true;                      // of q, k and v; the last product has one
  double proj_drop = 0;                      // dropout after that, as dropout() takes it
  bool causal = false;                       // a token attends to itself and those before it

  AttentionOptions resolved(const char* op) const;    // these, DropKey by rate; throws for what no attention can be
  plumb::AttentionOptions call(bool training) const;  // the op's options of one pass
  Tensor drop_heads(const Tensor& heads, bool training) const;  // DropHead on the output [B, T, D], heads side by side
};

// What every self-attention x [B, T, D] -> [B, T, D] has around its heads: qkv packs q, k, v in this order (weight [3D,
// D]), proj [D, D]; both with bias unless the options say otherwise. DropKey, dropout and DropHead are off in
// evaluation.
class SelfAttention : public Branch {
 public:
  const char* kind() const override { return "attn"; }
  Linear& first() override { return qkv_; }
  Linear& last() override { return proj_; }
  void scale_value_path(double factor) override;

  const AttentionOptions& options() const { return options_; }
  // Whether DropKey, dropout and DropHead are on while training; they are until this says otherwise.
  void drop_in_attention(bool on) { drops_ = on; }
  // What a forward pass on [batch, tokens, D] drops, or dropped, in the random scope that is open now: to be asked for
  // at the steps that are logged. Zeros in evaluation.
  DropKeyStatistics drop_key_statistics(std::int64_t batch, std::int64_t tokens) const;
  // What weighs the values, [B, heads, T, T] from what qkv gives [B, T, 3D], with nothing dropped.
  virtual Tensor probabilities(const Tensor& qkv) const;

 protected:
  SelfAttention(std::string type, const char* op,
                const AttentionOptions& options);  // op: the name in errors of the options

  Tensor forward(const Tensor& x) const override;
  virtual Tensor attend(const Tensor& qkv) const = 0;  // [B, T, 3D] -> what the heads collect, side by side [B, T, D]
  virtual bool takes_bf16() const { return false; }    // whether attend() does, in a bf16 run
  bool drops() const { return drops_ && training(); }
  Tensor scores(const Tensor& qkv)
      const;  // q k / sqrt(width of a head), [B, heads, T, T]; -inf where it is causal and may not look

 private:
  AttentionOptions options_;
  Linear qkv_, proj_;
  std::unique_ptr<Dropout> proj_drop_;  // null without dropout
  bool drops_ = true;
};

// Multi-head self-attention (Vaswani et al. 2017); scores are scaled by head_dim^-1/2.
class Attention : public SelfAttention {
 public:
  explicit Attention(const AttentionOptions& options);

 protected:
  Tensor attend(const Tensor& qkv) const override;
  bool takes_bf16() const override { return options().drop_head == 0; }
};

}  // namespace plumb::nn
