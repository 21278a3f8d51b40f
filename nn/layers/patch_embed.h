#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

struct PatchEmbedOptions {
  std::int64_t image, patch, channels, dim;  // square images and patches, extents in pixels
  Init init = Init::fan_in_uniform();        // as ViT, DeiT and CaiT leave it: their 0.02 is for linears, the patch
                                             // convolution keeps PyTorch's
};

// Images [B, C, H, W] -> tokens [B, (H/p)(W/p), dim], row by row: each p x p patch, flattened as (channel, row,
// column), through one linear `proj` (a convolution of stride p; its weight [dim, C p p] is the convolution's,
// flattened).
class PatchEmbed : public Layer {
 public:
  explicit PatchEmbed(const PatchEmbedOptions& options);
  std::int64_t tokens() const { return (options_.image / options_.patch) * (options_.image / options_.patch); }

 protected:
  Tensor forward(const Tensor& images) const override;

 private:
  PatchEmbedOptions options_;
  Linear proj_;
};

}  // namespace plumb::nn
