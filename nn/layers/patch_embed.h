// The patch embedding of a vision transformer.
#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

// Options of a PatchEmbed.
struct PatchEmbedOptions {
  std::int64_t image, patch, channels,
      dim;  // sides of the square images and patches in pixels, channels of the images, and width of the tokens
  // Init of the projection. ViT, DeiT and CaiT use std 0.02 for linear layers, but PyTorch's default for the patch
  // convolution; fan_in_uniform is this default.
  Init init = Init::fan_in_uniform();
};

// Maps images [B, C, H, W] to tokens [B, (H/p)(W/p), dim], row by row. Each p x p patch, flattened as (channel, row,
// column), passes through one linear layer `proj`. This map is a convolution of stride p; the weight [dim, C p p] is
// the flattened weight of that convolution. Throws Error for images of sizes other than those in the options.
class PatchEmbed : public Layer {
 public:
  using Options = PatchEmbedOptions;  // the options of the constructor, for nn::Child
  explicit PatchEmbed(const PatchEmbedOptions& options);
  std::int64_t tokens() const { return tokens_; }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  PatchEmbedOptions options_;
  std::int64_t tokens_;
  Child<Linear> proj_;
};

}  // namespace plumb::nn
