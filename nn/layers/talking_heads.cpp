#include "nn/layers/talking_heads.h"

#include "nn/layers/heads.h"

namespace plumb::nn {
namespace {

Init mix_init(std::int64_t heads, HeadMix init) {
  check(init != HeadMix::none, "[talking_heads] expected initial values of the mixes, got HeadMix::none");
  if (init == HeadMix::cait) return Init::truncated_normal(0.02);
  std::vector<double> identity(static_cast<std::size_t>(extent_product("talking_heads", {heads, heads})));
  for (std::int64_t i = 0; i < heads; ++i) identity[static_cast<std::size_t>(i * (heads + 1))] = 1;
  return Init::values(identity);
}

}  // namespace

TalkingHeadsAttention::Mix::Mix(std::int64_t heads, HeadMix init)
    : Module("Mix"),
      weight(parameter("weight", {heads, heads}, mix_init(heads, init), Role::weight)),
      bias(parameter("bias", {heads}, Init::constant(0), Role::bias)) {}

TalkingHeadsAttention::TalkingHeadsAttention(const AttentionOptions& o, HeadMix mix)
    : SelfAttention("TalkingHeadsAttention", "talking_heads", o),
      proj_l_(this, "proj_l", o.heads, mix),
      proj_w_(this, "proj_w", o.heads, mix) {}

Tensor TalkingHeadsAttention::probabilities(const AttentionPass& pass) const {
  const Tensor mixed = mix_heads(scores(pass), proj_l_.weight, proj_l_.bias);
  return mix_heads(softmax(masked(mixed, pass)), proj_w_.weight, proj_w_.bias);
}

Tensor TalkingHeadsAttention::attend(const Tensor& qkv, const AttentionMasking& call) const {
  const AttentionOptions& o = options();
  const auto part = [&](std::int64_t i) { return split_heads(slice(qkv, 2, i * o.dim, (i + 1) * o.dim), o.heads); };
  return merge_heads(
      attention_talking(part(0), part(1), part(2), proj_l_.weight, proj_l_.bias, proj_w_.weight, proj_w_.bias, call));
}

AttentionFactory attention_with(HeadMix mix) {
  if (mix == HeadMix::none) return make_attention<Attention>;
  return [mix](const AttentionOptions& o) { return std::make_unique<TalkingHeadsAttention>(o, mix); };
}

}  // namespace plumb::nn
