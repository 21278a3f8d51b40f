// Talking-heads attention (Shazeer et al. 2020), as in CaiT (Touvron et al. 2021): heads exchange scores and
// probabilities.
#pragma once

#include "nn/layers/attention.h"

namespace plumb::nn {

// How both mixes of heads start. With CaiT's truncated normal (std 0.02) the scores are almost 0, so each query attends
// to all keys equally, and the collected values are scaled by rows of the second mix instead of 1. With the identity,
// the layer starts as plain attention.
enum class HeadMixInit { truncated_normal, identity };

// A learned mix over heads. Parameters: weight [heads, heads], which starts as `init` says, and bias [heads], which
// starts at 0. The constructor throws Error for fewer than one head.
class HeadMix : public Module {
 public:
  HeadMix(std::int64_t heads, HeadMixInit init);
  // The parameters.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

 private:
  Tensor weight_, bias_;
};

// Self-attention x [B, T, D] -> [B, T, D] with two mixes over heads: proj_l mixes the scores before the softmax, proj_w
// mixes the probabilities after it (ops.h: attention_talking). Parameters: qkv and proj as in Attention, proj_l,
// proj_w. The op is not fused: it keeps several [B, heads, T, T] arrays.
//
// DropKey drops keys in each head of the mixed scores. With a separate mask per entry, a key that one head drops can
// come back: proj_w mixes in the probabilities of heads that kept it, and the bias of proj_w gives every key the same
// weight, dropped or not. With DropSharing::heads, one mask for all heads, only the effect of the bias remains; prefer
// it for this layer.
class TalkingHeadsAttention : public SelfAttention {
 public:
  explicit TalkingHeadsAttention(const AttentionOptions& options, HeadMixInit mix = HeadMixInit::truncated_normal);
  // After both mixes, so the rows need not sum to 1.
  Tensor probabilities(const Tensor& qkv) const override;

 protected:
  Tensor attend(const Tensor& qkv) const override;

 private:
  HeadMix proj_l_, proj_w_;
};

}  // namespace plumb::nn
