// Class attention (Touvron et al. 2021, CaiT, section 3): a class token reads the patches, which do not change.
#pragma once

#include "nn/layers/attention.h"

namespace plumb::nn {

// Maps u [B, 1 + T, D], with the class token first, to [B, 1, D]. Each head has one query, from the class token. Keys
// and values come from all tokens of u, so the class token also attends to itself. The linear layers q, k, v and proj
// have weights [D, D]; proj has a bias, and q, k and v have biases unless qkv_bias is false. The cost is linear in T.
// Throws Error for an input of another shape.
class ClassAttention : public Layer {
 public:
  using Options = AttentionOptions;  // the options of the constructor, for nn::Child
  explicit ClassAttention(const AttentionOptions& options);
  // Returns the attention probabilities for u, [B, heads, 1, 1 + T], without drops (DropKey, dropout).
  Tensor probabilities(const Tensor& u) const;

 protected:
  Tensor forward(const Tensor& u) const override;

 private:
  AttentionOptions options_;
  Child<Linear> q_, k_, v_, proj_;
  ChildPtr<Dropout> proj_drop_;  // null without dropout
};

}  // namespace plumb::nn
