#include "nn/models/vit.h"

#include <nlohmann/json.hpp>

#include "nn/models/card_fields.h"

namespace plumb::nn {

ViT::ViT(const ViTOptions& o)
    : Classifier("ViT"),
      options_(o),
      patch_embed_{this, "patch_embed", {.image = o.image, .patch = o.patch, .channels = o.channels, .dim = o.dim}},
      stack_{this,
             "",
             {.dim = o.dim,
              .depth = o.depth,
              .method = o.method,
              .junctions = {self_attention(attention_of(o)), mlp({.hidden = mlp_hidden("vit", o.mlp_ratio, o.dim)})},
              .norm_eps = o.norm_eps,
              .recipe = recipe_of(*o.method, o.recipe),
              .drop_path = o.drop_path,
              .final_norm = true}},
      head_{this,
            "head",
            {.in = o.dim, .out = o.classes, .init = weight_init(recipe_of(*o.method, o.recipe).base, o.dim)}} {
  const bool token = o.pool == Pool::token, at_once = token && o.token_block == 0;
  check(0 <= o.token_block && o.token_block < o.depth,
        "[vit] expected a class token that joins before one of {} blocks, got block {}", o.depth, o.token_block);
  check(token || o.token_block == 0,
        "[vit] expected pool token if the class token joins late (token_block {}), got pool mean", o.token_block);
  if (token) cls_token_ = parameter("cls_token", {1, 1, o.dim}, Init::truncated_normal(0.02), Role::embedding);
  pos_embed_ =
      parameter("pos_embed", {1, patch_embed_.tokens() + at_once, o.dim}, Init::truncated_normal(0.02), Role::position);
  if (recipe_of(*o.method, o.recipe).zero_head) head_.scale_init(0);
  initialize(*this, o.seed);
}

std::string ViT::card() const { return card_text<nlohmann::ordered_json>(options_); }

Tensor ViT::forward(const Tensor& images) const {
  const Tensor patches = patch_embed_(images);  // [B, T, D]
  if (options_.pool == Pool::mean) return head_(mean(stack_(patches + pos_embed_), {1}));
  const std::int64_t B = patches.dim(0), D = patches.dim(2);
  const Tensor token = broadcast_to(cls_token_, {B, 1, D});
  const std::int64_t joins = options_.token_block;
  Stream s = stack_.open(joins == 0 ? concat({token, patches}, 1) + pos_embed_ : patches + pos_embed_);
  stack_.advance(s, 0, joins);
  if (joins > 0) {
    check(s.carried.empty() && s.x.shape().rank() == 3,
          "[vit] expected a method whose stream is only the tokens if the class token joins late, got {}",
          options_.method->name);
    s.x = concat({token, s.x}, 1);
  }
  stack_.advance(s, joins, options_.depth);
  // The head reads only the class token, so only this token is normalised.
  s.x = slice(s.x, 1, 0, 1);
  for (Tensor& t : s.carried) t = slice(t, 1, 0, 1);
  return head_(reshape(stack_.close(s), {B, D}));
}

}  // namespace plumb::nn
