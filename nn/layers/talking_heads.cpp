#include "nn/layers/talking_heads.h"

#include "nn/layers/heads.h"

namespace plumb::nn {
namespace {

Init mix_init(std::int64_t heads, HeadMixInit init) {
  if (init == HeadMixInit::truncated_normal) return Init::truncated_normal(0.02);
  std::vector<double> identity(static_cast<std::size_t>(heads * heads));
  for (std::int64_t i = 0; i < heads; ++i) identity[static_cast<std::size_t>(i * (heads + 1))] = 1;
  return Init::values(identity);
}

}  // namespace

HeadMix::HeadMix(std::int64_t heads, HeadMixInit init) : Module("HeadMix") {
  check(heads > 0, "[talking_heads] expected at least one head, got {}", heads);
  weight_ = parameter("weight", {heads, heads}, mix_init(heads, init), Role::weight);
  bias_ = parameter("bias", {heads}, Init::constant(0), Role::bias);
}

TalkingHeadsAttention::TalkingHeadsAttention(const AttentionOptions& o, HeadMixInit mix)
    : Branch("TalkingHeadsAttention"),
      options_(o),
      qkv_({.in = o.dim, .out = 3 * o.dim, .init = o.init}),
      proj_({.in = o.dim, .out = o.dim, .init = o.init}),
      proj_l_(o.heads, mix),
      proj_w_(o.heads, mix) {
  o.check_values("talking_heads");
  child("qkv", qkv_);
  child("proj", proj_);
  child("proj_l", proj_l_);
  child("proj_w", proj_w_);
}

void TalkingHeadsAttention::scale_value_path(double factor) {
  qkv_.weight_init() = qkv_.weight_init().scaled_part(2, 3, factor);
  proj_.scale_init(factor);
}

Tensor TalkingHeadsAttention::forward(const Tensor& x) const {
  static const Inside nothing;
  const Inside& inside = inside_ ? *inside_ : nothing;
  const Tensor qkv = inside.projected(qkv_(inside.input(x)));
  const auto part = [&](std::int64_t i) { return split_heads(slice(qkv, 2, i * options_.dim, (i + 1) * options_.dim), options_.heads); };
  const Tensor heads =
      attention_talking(part(0), part(1), part(2), proj_l_.weight(), proj_l_.bias(), proj_w_.weight(), proj_w_.bias(), options_.call(training()));
  return proj_(inside.hidden(options_.drop_heads(merge_heads(heads), training())));
}

}  // namespace plumb::nn
