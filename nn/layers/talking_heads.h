// Attention whose heads talk (Shazeer et al. 2020), as in CaiT (Touvron et al. 2021).
#pragma once

#include "nn/layers/attention.h"

namespace plumb::nn {

// How both mixes of heads start. CaiT's truncated normal (std 0.02) leaves scores of almost 0, so that each query looks
// at all keys alike, and what it then collects is scaled by rows of the second mix, not by 1. From the identity the
// layer starts as plain attention.
enum class HeadMixInit { truncated_normal, identity };

// One mix over heads: weight [heads, heads]; bias [heads] starts at 0.
class HeadMix : public Module {
 public:
  HeadMix(std::int64_t heads, HeadMixInit init);
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

 private:
  Tensor weight_, bias_;
};

// Self-attention x [B, T, D] -> [B, T, D] whose scores are mixed over heads by proj_l before the softmax, whose
// probabilities by proj_w after it (ops.h: attention_talking). Parameters qkv, proj as Attention's, proj_l, proj_w. Not
// fused: keeps several [B, heads, T, T] arrays.
//
// DropKey drops in each head of mixed scores. With a mask per entry a key dropped in one head comes back: proj_w mixes
// in the probabilities of heads that kept it, and proj_w's bias gives every key the same weight, dropped or not.
// DropSharing::heads, one mask for all heads, leaves the bias alone; prefer it here.
class TalkingHeadsAttention : public SelfAttention {
 public:
  explicit TalkingHeadsAttention(const AttentionOptions& options, HeadMixInit mix = HeadMixInit::truncated_normal);
  Tensor probabilities(const Tensor& qkv) const override;  // after both mixes: rows need not sum to 1

 protected:
  Tensor attend(const Tensor& qkv) const override;

 private:
  HeadMix proj_l_, proj_w_;
};

}  // namespace plumb::nn
