// CaiT, a vision transformer with class attention (Touvron et al. 2021, Going deeper with image transformers).
#pragma once

#include "nn/blocks/class_attention_block.h"
#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/layers/attention.h"
#include "nn/layers/patch_embed.h"
#include "nn/models/classifier.h"
#include "nn/models/vit.h"

namespace plumb::nn {

// Options of a CaiT. The defaults are those of CaiT-XXS24. The first four fields are in timm's order; designated
// initialisers must keep this order.
struct CaiTOptions {
  // Sides of images and patches in pixels, channels of the images, and number of classes.
  std::int64_t image = 224, patch = 16, channels = 3, classes = 1000;
  std::int64_t dim = 192, depth = 24, heads = 4;  // `depth`: number of blocks of stage 1
  std::int64_t depth_token_only = 2;              // number of blocks of stage 2
  double mlp_ratio = 4;                           // the hidden width of the MLPs is round(mlp_ratio dim)
  MethodChoice method = "layerscale";             // residual method of stage 1; stage 2 always has LayerScale
  // Initial value of LayerScale's gammas in both stages. If not given, layerscale_init() computes the value from the
  // depth. If `method` is not "layerscale", `init` affects only stage 2.
  std::optional<double> init = {};
  HeadMix head_mix = HeadMix::cait;  // the talking heads of stage 1
  double norm_eps = 1e-6;
  // The training recipe: weights of both stages, head, and learning-rate factor of scalars. If the recipe is not given,
  // recipe_of() chooses the recipe.
  std::optional<Recipe> recipe = {};
  // Drop rates of stage 1. As in the authors' model, stage 2 has no drops.
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};  // the default schedule is constant over the blocks
  std::uint64_t seed = 0;          // seed of the initial values
};

// The options of a CaiT with the sizes, the method and the drops of a ViT. The others have their defaults.
CaiTOptions cait_of(const ViTOptions& vit);

// Returns the options of a published CaiT, for images of 224 pixels and 1000 classes: "cait-paper-SIZE" follows the
// rules of the paper, completed by the authors' code, and "cait-timm-SIZE" describes the model that timm's cait_SIZE
// builds. SIZE is xxs, xs, s or m followed by 24, 36 or 48 blocks. bin/vit --list-presets lists all, with their
// sources. Throws Error for an unknown name; the message contains the nearest known names.
CaiTOptions cait_options(const std::string& preset);

// Maps images [B, C, H, W] to logits [B, classes]. Stage 1 is a stack of residual blocks over the patches. In stage 2,
// a class token reads the patches, which no longer change. Parameters: patch_embed.proj, cls_token (1, 1, D), pos_embed
// (1, T, D), blocks.N.*, blocks_token_only.N.*, norm, head. The constructor initialises the parameters. Throws Error
// for invalid options.
class CaiT : public Classifier {
 public:
  using Options = CaiTOptions;  // the options of the constructor, for nn::Child
  explicit CaiT(const CaiTOptions& options);

  const CaiTOptions& options() const { return options_; }  // the options that the constructor received
  std::string card() const override;
  Stack& stack() override { return stack_; }  // the blocks of stage 1
  // Returns the blocks of stage 1.
  const Children<Block>& blocks() const { return stack_.blocks(); }
  // If `on` is true, each block of stage 1 is computed again in the backward pass, and the activations inside the block
  // are not kept.
  void checkpoint_blocks(bool on) { stack_.checkpoint_blocks(on); }

  // The two stages of forward(). patches() maps images to patches [B, T, D]; class_token() maps these patches to the
  // class token [B, 1, D], before the final norm.
  Tensor patches(const Tensor& images) const;
  Tensor class_token(const Tensor& patches) const;

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  CaiTOptions options_;
  Child<PatchEmbed> patch_embed_;
  Tensor cls_token_, pos_embed_;
  Child<Stack> stack_;
  Children<LayerScaleBlockClassAttn> blocks_token_only_;
  Child<LayerNorm> norm_;
  Child<Linear> head_;
};

}  // namespace plumb::nn
