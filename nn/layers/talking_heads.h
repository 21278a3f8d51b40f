// Talking-heads attention (Shazeer et al. 2020), as in CaiT (Touvron et al. 2021): heads exchange scores and
// probabilities.
#pragma once

#include <array>

#include "nn/layers/attention.h"

namespace plumb::nn {

// Whether heads are mixed, and the initial values of both mixes. With CaiT's truncated normal (std 0.02), the mixed
// scores are almost 0, so each query attends to all keys almost equally, and the rows of the second mix, instead of 1,
// scale the outputs of the heads. With the identity, the new layer equals plain attention.
enum class HeadMix {
  cait,      // a truncated normal of std 0.02, as published
  identity,  // identity matrices, which do not mix at the start
  none       // plain attention: Attention, not TalkingHeadsAttention
};
constexpr auto names_of(HeadMix) { return std::array{"cait", "identity", "none"}; }

// Self-attention x [B, T, D] -> [B, T, D] with two mixes over heads: proj_l mixes the scores before the softmax, proj_w
// mixes the probabilities after it (ops.h: attention_talking). Parameters: qkv and proj as in Attention, proj_l,
// proj_w. The op is not fused: it keeps several [B, heads, T, T] arrays.
//
// DropKey drops keys in each head of the mixed scores. With a separate mask per entry, a dropped key can still have an
// effect: proj_w mixes in the probabilities of heads that kept the key, and the bias of proj_w gives every key, also a
// dropped key, the same weight. With DropSharing::heads (one mask for all heads), only the effect of the bias remains.
// DropSharing::heads is therefore recommended for this layer.
class TalkingHeadsAttention : public SelfAttention {
 public:
  // Throws Error for HeadMix::none.
  explicit TalkingHeadsAttention(const AttentionOptions& options, HeadMix mix = HeadMix::cait);
  // Returns the probabilities after both mixes. The rows need not sum to 1.
  Tensor probabilities(const AttentionPass& pass) const override;

 protected:
  Tensor attend(const Tensor& qkv, const AttentionMasking& call) const override;

 private:
  struct Mix : Module {  // weight [heads, heads] and bias [heads], with the initial value 0
    Mix(std::int64_t heads, HeadMix init);
    Tensor weight, bias;
  };
  Child<Mix> proj_l_, proj_w_;
};

// Returns the factory of self-attention with this mix: Attention or TalkingHeadsAttention.
AttentionFactory attention_with(HeadMix mix);

}  // namespace plumb::nn
