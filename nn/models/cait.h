// CaiT, a vision transformer with class attention (Touvron et al. 2021, Going deeper with image transformers).
#pragma once

#include "nn/layers/class_attention.h"
#include "nn/layers/patch_embed.h"
#include "nn/layers/talking_heads.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

// Options of a CaiT. The defaults are those of CaiT-XXS24. The first four are in timm's order, which designated
// initialisers must keep.
struct CaiTOptions {
  // Sides of images and patches in pixels, channels of the images, and classes.
  std::int64_t image = 224, patch = 16, channels = 3, classes = 1000;
  std::int64_t dim = 192, depth = 24, heads = 4;  // depth: blocks of stage 1
  std::int64_t depth_token_only = 2;              // blocks of stage 2
  double mlp_ratio = 4;                           // hidden width of the MLPs is round(mlp_ratio dim)
  GateChoice gate = "layerscale";                 // residual method of stage 1; stage 2 always has LayerScale
  // Initial value of LayerScale's gammas in both stages. If not given, it follows from the depth. A gate other than
  // "layerscale" has its own initial values in stage 1.
  std::optional<double> init = {};
  // The attention of stage 1; make_attention<Attention> for plain heads.
  AttentionFactory attention = make_attention<TalkingHeadsAttention>;
  double norm_eps = 1e-6;
  // The training recipe: weights of both stages, head, and learning-rate factor of scalars. If not given, recipe_of()
  // chooses it.
  std::optional<Recipe> recipe = {};
  // Drop rates of stage 1. As in the authors' model, nothing is dropped in stage 2.
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};  // constant over the blocks unless the schedule says otherwise
  std::uint64_t seed = 0;          // of the initial values
};

// Maps images [B, C, H, W] to logits [B, classes]. Stage 1 is a stack of residual blocks over the patches. In stage 2,
// a class token reads the patches, which no longer change. Parameters: patch_embed.proj, cls_token (1, 1, D), pos_embed
// (1, T, D), blocks.N.*, blocks_token_only.N.*, norm, head. The constructor initialises them, and throws Error for
// options that do not fit.
class CaiT : public Classifier {
 public:
  explicit CaiT(const CaiTOptions& options);

  const CaiTOptions& options() const { return options_; }  // as given to the constructor
  Stack& stack() override { return stack_; }  // stage 1
  // The blocks of stage 1 and of stage 2.
  const std::vector<std::unique_ptr<Block>>& blocks() const { return stack_.blocks(); }
  const std::vector<std::unique_ptr<LayerScaleBlockClassAttn>>& blocks_token_only() const { return blocks_token_only_; }
  // If on, each block of stage 1 is computed again in the backward pass, and its activations are not kept.
  void checkpoint_blocks(bool on) { stack_.checkpoint_blocks(on); }

  // The two stages. patches() maps images to patches [B, T, D]; class_token() maps these to the class token [B, 1, D],
  // before the norm.
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
