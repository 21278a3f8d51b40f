// The vision transformer (Dosovitskiy et al. 2021), with a residual method that is chosen in its options.
#pragma once

#include <array>

#include "nn/layers/patch_embed.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

// The input of the head after the last norm: the class token, which joins the patches, or the mean of the patches,
// without a class token.
enum class Pool { token, mean };
// The names of the values of Pool, in their order.
constexpr auto names_of(Pool) { return std::array{"token", "mean"}; }

// Options of a ViT. The first four are in timm's order, which designated initialisers must keep.
struct ViTOptions {
  std::int64_t image = 32, patch = 8, channels = 3, classes = 10;  // sides of images and patches in pixels
  std::int64_t dim = 64, depth = 12, heads = 2;                    // depth: number of blocks
  double mlp_ratio = 4;                                            // hidden width of the MLPs is round(mlp_ratio dim)
  GateChoice gate = "layerscale";
  double norm_eps = 1e-6;
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  Pool pool = Pool::mean;  // as in the tables of the experiments
  // The block before which the class token joins the patches, 0 .. depth - 1. A token that joins late, after block 0,
  // has no position.
  std::int64_t token_block = 0;
  // The training recipe: weights, head, and learning-rate factor of scalars. If not given, recipe_of() chooses it.
  std::optional<Recipe> recipe = {};
  std::uint64_t seed = 0;  // of the initial values
};

// Maps images [B, C, H, W] to logits [B, classes]. Parameters, under timm's names: patch_embed.proj, cls_token (1, 1,
// D), pos_embed, blocks.N.*, norm, head. pos_embed is (1, T + 1, D) with a class token that joins before block 0, and
// (1, T, D) with one that joins late (CaiT, section 3) or with Pool::mean. Pool::mean, the default, has no cls_token;
// it is timm's global_pool='avg', class_token=False, fc_norm=False.
// The trunk (everything but blocks.*) is the same for every method, and so are its initial values, except the head,
// which the recipe may set to 0. With default options, the network equals that of a study's Trial::vit except for the
// recipe: a study uses the recipe shared by all methods, Recipe{}.
// The constructor initialises the parameters, and throws Error for options that do not fit.
class ViT : public Classifier {
 public:
  explicit ViT(const ViTOptions& options);

  // The options, the stack of blocks, and the blocks.
  const ViTOptions& options() const { return options_; }
  Stack& stack() override { return stack_; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return stack_.blocks(); }
  // If on, each block is computed again in the backward pass, and its activations are not kept.
  void checkpoint_blocks(bool on) { stack_.checkpoint_blocks(on); }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  ViTOptions options_;
  PatchEmbed patch_embed_;
  Tensor cls_token_, pos_embed_;  // cls_token_ is undefined with Pool::mean
  Stack stack_;
  Linear head_;
};

}  // namespace plumb::nn
