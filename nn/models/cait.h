// CaiT (Touvron et al. 2021, Going deeper with image transformers).
#pragma once

#include "nn/layers/class_attention.h"
#include "nn/layers/patch_embed.h"
#include "nn/layers/talking_heads.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

struct CaiTOptions {
  std::int64_t image = 224, patch = 16, channels = 3,
               classes = 1000;                    // initialisers must keep this order, which is timm's
  std::int64_t dim = 192, depth = 24, heads = 4;  // XXS24; depth counts the blocks of stage 1
  std::int64_t depth_token_only = 2;              // blocks of stage 2
  double mlp_ratio = 4;                           // hidden width of the MLPs, in widths: round(mlp_ratio dim)
  GateChoice gate = "layerscale";  // residual method of stage 1; stage 2 keeps LayerScale whatever this is
  std::optional<double> init =
      {};  // of LayerScale's gammas in both stages (a gate other than "layerscale" has its own); if not given, by depth
  AttentionFactory attention =
      make_attention<TalkingHeadsAttention>;  // of stage 1; make_attention<Attention> for plain heads
  double norm_eps = 1e-6;
  std::optional<Recipe> recipe = {};  // weights of both stages, head and rates of scalars; recipe_of() if not given
  DropKey drop_key = {};              // this and the next three in stage 1 alone, as the authors have it
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};  // uniform over blocks unless it says otherwise
  std::uint64_t seed = 0;          // of the initial values
};

// Images [B, C, H, W] -> logits [B, classes]. Stage 1 is a stack of blocks over the patches alone; in stage 2 a class
// token reads the patches, which are not updated any more. Parameters: patch_embed.proj, cls_token (1, 1, D), pos_embed
// (1, T, D), blocks.N.*, blocks_token_only.N.*, norm, head.
class CaiT : public Classifier {
 public:
  explicit CaiT(const CaiTOptions& options);

  const CaiTOptions& options() const { return options_; }
  Stack& stack() override { return stack_; }  // stage 1
  const std::vector<std::unique_ptr<Block>>& blocks() const { return stack_.blocks(); }
  const std::vector<std::unique_ptr<LayerScaleBlockClassAttn>>& blocks_token_only() const { return blocks_token_only_; }
  // Recompute each block of stage 1 in the backward pass instead of keeping its activations.
  void checkpoint_blocks(bool on) { stack_.checkpoint_blocks(on); }

  // The two stages: images -> patches [B, T, D]; these -> the class token [B, 1, D], before the norm.
  Tensor patches(const Tensor& images) const;
  Tensor class_token(const Tensor& patches) const;

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  CaiTOptions options_;
  PatchEmbed patch_embed_;
  Tensor cls_token_, pos_embed_;
  Stack stack_;
  std::vector<std::unique_ptr<LayerScaleBlockClassAttn>> blocks_token_only_;
  LayerNorm norm_;
  Linear head_;
};

}  // namespace plumb::nn
