#pragma once

#include "autograd/ops.h"
#include "nn/branch.h"
#include "nn/schedule.h"

namespace plumb::nn {

// DropKey (Li et al., CVPR 2023): while training, each (head, query) loses each key with probability `rate` before the softmax.
// Survivors are not rescaled: the softmax renormalises. METHODS: a decreasing schedule over depth is best.
struct DropKey {
  double rate = 0;
  Schedule schedule = Schedule::constant;
  EmptyRow empty = EmptyRow::keep_all;
};

struct AttentionOptions {
  std::int64_t dim, heads;
  double drop_key = 0;                       // this layer's rate
  EmptyRow empty = EmptyRow::keep_all;       // see core/backend.h
  double dropout = 0;                        // of the attention probabilities
  Init init = Init::truncated_normal(0.02);  // of both weights
};

// Multi-head self-attention (Vaswani et al. 2017): x [B, T, D] -> [B, T, D]. qkv packs q, k, v in this order (weight [3D, D]), proj
// [D, D]; both with bias; scores are scaled by head_dim^-1/2.
class Attention : public Branch {
 public:
  explicit Attention(const AttentionOptions& options);

  const char* kind() const override { return "attn"; }
  Linear& first() override { return qkv_; }
  Linear& last() override { return proj_; }
  void scale_value_path(double factor) override;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  AttentionOptions options_;
  Linear qkv_, proj_;
};

}  // namespace plumb::nn
