// Vision transformer (Dosovitskiy et al. 2021) whose residual method is named by its options.
#pragma once

#include <array>

#include "nn/layers/patch_embed.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

// What the head reads after the last norm: a class token beside the patches, or the mean of the patches, without a
// token.
enum class Pool { token, mean };
constexpr auto names_of(Pool) { return std::array{"token", "mean"}; }

struct ViTOptions {
  std::int64_t image = 32, patch = 8, channels = 3, classes = 10;  // initialisers must keep this order, which is timm's
  std::int64_t dim = 64, depth = 12, heads = 2;                    // depth counts blocks
  double mlp_ratio = 4;  // hidden width of the MLPs, in widths: round(mlp_ratio dim)
  GateChoice gate = "layerscale";
  double norm_eps = 1e-6;
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  Pool pool = Pool::mean;  // as the tables of the experiments have it
  std::int64_t token_block =
      0;  // the class token joins the patches before this block, 0 .. depth - 1; late, it has no position
  std::optional<Recipe> recipe = {};  // weights, head and rates of scalars; recipe_of() if not given
  std::uint64_t seed = 0;             // of the initial values
};

// Images [B, C, H, W] -> logits [B, classes]. Parameters under timm's names: patch_embed.proj, cls_token (1, 1, D),
// pos_embed (1, T + 1, D), blocks.N.*, norm, head; with a class token that joins late (CaiT, section 3), pos_embed is
// (1, T, D); with Pool::mean, the default, which is timm's global_pool='avg', class_token=False, fc_norm=False, there
// is no cls_token, and pos_embed is (1, T, D). The trunk (everything but blocks.*) is the same for every method, and so
// are its initial values but for what the recipe says of the head. With its other defaults, too, the network is the one
// that a study's Trial::vit makes, but for the recipe: there it is shared by all methods, Recipe{}.
class ViT : public Classifier {
 public:
  explicit ViT(const ViTOptions& options);

  const ViTOptions& options() const { return options_; }
  Stack& stack() override { return stack_; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return stack_.blocks(); }
  // Recompute each block in the backward pass instead of keeping its activations.
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
