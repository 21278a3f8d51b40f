// Vision transformer (Dosovitskiy et al. 2021) whose residual method is named by its options.
#pragma once

#include "nn/layers/patch_embed.h"
#include "nn/models/classifier.h"

namespace plumb::nn {

struct ViTOptions {
  std::int64_t image = 32, channels = 3, patch = 8, classes = 10;
  std::int64_t dim = 64, depth = 12, heads = 2;  // depth counts blocks
  std::int64_t mlp_ratio = 4;
  GateChoice gate = "layerscale";
  double norm_eps = 1e-6;
  DropKey drop_key = {};
  double attention_dropout = 0;
  DropHeadOptions drop_head = {};
  DropPathOptions drop_path = {};
  bool paper_init = false;  // the method's own base init instead of the truncated normal (std 0.02) that all share
  std::uint64_t seed = 0;   // of the initial values
};

// Images [B, C, H, W] -> logits [B, classes]. Parameters under timm's names: patch_embed.proj, cls_token (1, 1, D), pos_embed
// (1, T + 1, D), blocks.N.*, norm, head. The trunk (everything but blocks.*) is the same for every method, and so are its initial
// values, except that a method may ask for a head of zeros, and that with paper_init the head starts from the method's base.
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
  Tensor cls_token_, pos_embed_;
  Stack stack_;
  Linear head_;
};

}  // namespace plumb::nn
