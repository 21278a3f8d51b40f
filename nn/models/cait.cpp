#include "nn/models/cait.h"

#include <nlohmann/json.hpp>

#include "nn/gates/methods.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {

CaiTOptions cait_of(const ViTOptions& vit) {
  return {.image = vit.image,
          .patch = vit.patch,
          .channels = vit.channels,
          .classes = vit.classes,
          .dim = vit.dim,
          .depth = vit.depth,
          .heads = vit.heads,
          .mlp_ratio = vit.mlp_ratio,
          .method = vit.method,
          .norm_eps = vit.norm_eps,
          .recipe = vit.recipe,
          .drop_key = vit.drop_key,
          .attention_dropout = vit.attention_dropout,
          .drop_head = vit.drop_head,
          .drop_path = vit.drop_path,
          .seed = vit.seed};
}

namespace {

AttentionOptions mixing_attention(const CaiTOptions& o) {
  AttentionOptions attention = attention_of(o);
  attention.head_mix = o.head_mix;
  return attention;
}

}  // namespace

CaiT::CaiT(const CaiTOptions& o)
    : Classifier("CaiT"),
      options_(o),
      patch_embed_{this, "patch_embed", {.image = o.image, .patch = o.patch, .channels = o.channels, .dim = o.dim}},
      stack_{
          this,
          "",
          {.dim = o.dim,
           .depth = o.depth,
           .method = o.method->name == "layerscale" && o.init ? methods::layerscale(o.init) : o.method,
           .junctions = {self_attention(mixing_attention(o)), mlp({.hidden = mlp_hidden("cait", o.mlp_ratio, o.dim)})},
           .norm_eps = o.norm_eps,
           .recipe = recipe_of(*o.method, o.recipe),
           .drop_path = o.drop_path}},
      blocks_token_only_(this, "blocks_token_only"),
      norm_(this, "norm", o.dim, o.norm_eps),
      head_{this,
            "head",
            {.in = o.dim, .out = o.classes, .init = weight_init(recipe_of(*o.method, o.recipe).base, o.dim)}} {
  check(o.depth_token_only >= 1, "[cait] expected a depth_token_only of at least 1 block, got {}", o.depth_token_only);
  cls_token_ = parameter("cls_token", {1, 1, o.dim}, Init::truncated_normal(0.02), Role::embedding);
  pos_embed_ = parameter("pos_embed", {1, patch_embed_.tokens(), o.dim}, Init::truncated_normal(0.02), Role::position);
  for (std::int64_t i = 0; i < o.depth_token_only; ++i)
    blocks_token_only_.add({.dim = o.dim,
                            .heads = o.heads,
                            .hidden = mlp_hidden("cait", o.mlp_ratio, o.dim),
                            .init = o.init.value_or(layerscale_init(o.depth)),
                            .norm_eps = o.norm_eps,
                            .weights = weight_init(recipe_of(*o.method, o.recipe).base, o.dim)});
  if (recipe_of(*o.method, o.recipe).zero_head) head_.scale_init(0);
  initialize(*this, o.seed);
}

std::string CaiT::card() const { return card_text<nlohmann::ordered_json>(options_); }

Tensor CaiT::patches(const Tensor& images) const { return stack_(patch_embed_(images) + pos_embed_); }

Tensor CaiT::class_token(const Tensor& patches) const {
  Tensor cls = broadcast_to(cls_token_, {patches.dim(0), 1, patches.dim(2)});
  for (const auto& block : blocks_token_only_) cls = block(patches, cls);
  return cls;
}

// The authors normalise [class token; patches] and read the class token. A norm treats each token separately, so the
// result is the same if only the class token is normalised.
Tensor CaiT::forward(const Tensor& images) const {
  const Tensor cls = norm_(class_token(patches(images)));
  return head_(reshape(cls, {cls.dim(0), cls.dim(2)}));
}

}  // namespace plumb::nn
