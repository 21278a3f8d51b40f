#include "nn/models/vit.h"

#include "autograd/checkpoint.h"

namespace plumb::nn {
namespace {

Base base_of(const ViTOptions& o) { return o.paper_init ? method_named(o.gate).paper_base : Base::truncated_normal; }

}  // namespace

ViT::ViT(const ViTOptions& o)
    : Layer("ViT"),
      options_(o),
      patch_embed_({.image = o.image, .patch = o.patch, .channels = o.channels, .dim = o.dim}),
      norm_(o.dim, o.norm_eps),
      head_({.in = o.dim, .out = o.classes, .init = weight_init(base_of(o))}) {
  check(o.depth >= 1, "[vit] expected a depth of at least 1, got {}", o.depth);
  check(o.heads > 0 && o.dim % o.heads == 0, "[vit] expected a width that is a multiple of the heads, got dim {} and {} heads", o.dim, o.heads);
  cls_token_ = parameter("cls_token", {1, 1, o.dim}, Init::truncated_normal(0.02), Role::embedding);
  pos_embed_ = parameter("pos_embed", {1, patch_embed_.tokens() + 1, o.dim}, Init::truncated_normal(0.02), Role::position);
  child("patch_embed", patch_embed_);
  for (std::int64_t i = 0; i < o.depth; ++i) {
    blocks_.push_back(std::make_unique<Block>(BlockOptions{.dim = o.dim,
                                                           .heads = o.heads,
                                                           .hidden = o.mlp_ratio * o.dim,
                                                           .gate = o.gate,
                                                           .block = i,
                                                           .blocks = o.depth,
                                                           .norm_eps = o.norm_eps,
                                                           .base = base_of(o),
                                                           .drop_key = rate_at(o.drop_key.schedule, o.drop_key.rate, i, o.depth),
                                                           .attention_dropout = o.attention_dropout,
                                                           .drop_path = rate_at(o.drop_path.schedule, o.drop_path.rate, i, o.depth),
                                                           .empty = o.drop_key.empty}));
    child(fmt::format("blocks.{}", i), *blocks_.back());
  }
  child("norm", norm_);
  child("head", head_);
  if (method_named(o.gate).zero_head) head_.weight_init() = head_.weight_init().scaled(0);
  initialize(*this, o.seed);
}

Tensor ViT::forward(const Tensor& images) const {
  const Tensor patches = patch_embed_(images);  // [B, T, D]
  const std::int64_t B = patches.dim(0), D = patches.dim(2);
  Tensor x = concat({broadcast_to(cls_token_, {B, 1, D}), patches}, 1) + pos_embed_;
  for (const auto& block : blocks_) x = checkpoint_blocks_ ? checkpoint([&b = *block](const Tensors& in) { return b(in[0]); }, {x}) : (*block)(x);
  // Only the class token is read, so only it is normalised.
  return head_(norm_(reshape(slice(x, 1, 0, 1), {B, D})));
}

}  // namespace plumb::nn
