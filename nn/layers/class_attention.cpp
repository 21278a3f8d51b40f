#include "nn/layers/class_attention.h"

#include <cmath>

#include "nn/layers/heads.h"

namespace plumb::nn {

ClassAttention::ClassAttention(const AttentionOptions& o)
    : Layer("ClassAttention"),
      options_(o.resolved("class_attention")),
      q_{this, "q", {.in = o.dim, .out = o.dim, .bias = o.qkv_bias, .init = o.init}},
      k_{this, "k", {.in = o.dim, .out = o.dim, .bias = o.qkv_bias, .init = o.init}},
      v_{this, "v", {.in = o.dim, .out = o.dim, .bias = o.qkv_bias, .init = o.init}},
      proj_{this, "proj", {.in = o.dim, .out = o.dim, .init = o.init}} {
  check(o.head_mix == HeadMix::none, "[class_attention] expected no mix of heads, got HeadMix::{}",
        enum_name(o.head_mix));
  if (o.proj_drop > 0) proj_drop_ = {this, "proj_drop", make<Dropout>(o.proj_drop)};
}

Tensor ClassAttention::forward(const Tensor& u) const {
  check(u.shape().rank() == 3 && u.dim(1) > 0 && u.dim(2) == options_.dim,
        "[class_attention] expected an input [B, 1 + T, {}] with the class token first, got {}", options_.dim,
        u.shape());
  const std::int64_t H = options_.heads;
  const Tensor heads = attention(split_heads(q_(slice(u, 1, 0, 1)), H), split_heads(k_(u), H), split_heads(v_(u), H),
                                 options_.call(training()));
  const Tensor y = proj_(options_.drop_heads(merge_heads(heads), training()));
  return proj_drop_ ? (*proj_drop_)(y) : y;
}

Tensor ClassAttention::probabilities(const Tensor& u) const {
  const std::int64_t H = options_.heads;
  const Tensor scores = matmul(split_heads(q_(slice(u, 1, 0, 1)), H), split_heads(k_(u), H), false, true);
  return softmax(scores * (1 / std::sqrt(static_cast<double>(options_.dim / H))));
}

}  // namespace plumb::nn
