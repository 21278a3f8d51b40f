// The vision transformer (Dosovitskiy et al. 2021), with the residual method in ViTOptions::method.
#pragma once

#include <array>

#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/layers/patch_embed.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

// The input of the head after the last norm. With `token`, a class token joins the patches, and the head reads the
// class token. With `mean`, there is no class token, and the head reads the mean of the patches.
enum class Pool { token, mean };
constexpr auto names_of(Pool) { return std::array{"token", "mean"}; }

// Options of a ViT. The first four fields are in timm's order; designated initialisers must keep this order.
struct ViTOptions {
  std::int64_t image = 32, patch = 8, channels = 3, classes = 10;  // `image`, `patch`: sides in pixels
  std::int64_t dim = 64, depth = 12, heads = 2;                    // `depth`: number of blocks
  double mlp_ratio = 4;  // the hidden width of the MLPs is round(mlp_ratio dim)
  MethodChoice method = "layerscale";
  double norm_eps = 1e-6;
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  Pool pool = Pool::mean;  // as in the tables of the experiments
  // The block before which the class token joins the patches, 0 .. depth - 1. A class token that joins after block 0
  // (late) has no position.
  std::int64_t token_block = 0;
  // The training recipe: weights, head, and learning-rate factor of scalars. If the recipe is not given, recipe_of()
  // chooses the recipe.
  std::optional<Recipe> recipe = {};
  std::uint64_t seed = 0;  // seed of the initial values
};

// Maps images [B, C, H, W] to logits [B, classes]. Parameters, under timm's names: patch_embed.proj, cls_token (1, 1,
// D), pos_embed, blocks.N.*, norm, head. If a class token joins before block 0, pos_embed is (1, T + 1, D). If the
// class token joins late (CaiT, section 3), or with Pool::mean, pos_embed is (1, T, D). With Pool::mean, the default,
// the model has no cls_token, as in timm with global_pool='avg', class_token=False, fc_norm=False.
// The parameters outside blocks.* and their initial values are the same for every method, except that the recipe may
// set the head to 0. With default options, the network equals the network of a study's vision::vit except for the
// recipe: a study uses the recipe that all methods share, Recipe{}.
// The constructor initialises the parameters. Throws Error for invalid options.
class ViT : public Classifier {
 public:
  using Options = ViTOptions;  // the options of the constructor, for nn::Child
  explicit ViT(const ViTOptions& options);

  // Return the options, the stack of blocks, and the blocks.
  const ViTOptions& options() const { return options_; }
  std::string card() const override;
  Stack& stack() override { return stack_; }
  const Children<Block>& blocks() const { return stack_.blocks(); }
  // If `on` is true, each block is computed again in the backward pass, and the activations inside the block are not
  // kept.
  void checkpoint_blocks(bool on) { stack_.checkpoint_blocks(on); }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  ViTOptions options_;
  Child<PatchEmbed> patch_embed_;
  Tensor cls_token_, pos_embed_;  // cls_token_ is undefined with Pool::mean
  Child<Stack> stack_;
  Child<Linear> head_;
};

}  // namespace plumb::nn
