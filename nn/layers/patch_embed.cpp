#include "nn/layers/patch_embed.h"

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

const PatchEmbedOptions& checked(const PatchEmbedOptions& o) {
  check(o.patch > 0 && o.image > 0 && o.image % o.patch == 0,
        "[patch_embed] expected an image size that is a multiple of the patch, got image {} and patch {}", o.image,
        o.patch);
  return o;
}

}  // namespace

PatchEmbed::PatchEmbed(const PatchEmbedOptions& o)
    : Layer("PatchEmbed"),
      options_(checked(o)),
      tokens_(extent_product("patch_embed", {o.image / o.patch, o.image / o.patch})),
      proj_{this,
            "proj",
            {.in = extent_product("patch_embed", {o.channels, o.patch, o.patch}), .out = o.dim, .init = o.init}} {}

Tensor PatchEmbed::forward(const Tensor& images) const {
  const std::int64_t p = options_.patch, side = options_.image / p, c = options_.channels;
  check(images.shape().rank() == 4 && images.dim(1) == c && images.dim(2) == options_.image &&
            images.dim(3) == options_.image,
        "[patch_embed] expected images [B, {}, {}, {}], got {}", c, options_.image, options_.image, images.shape());
  const std::int64_t B = images.dim(0);
  const Tensor patches = permute(reshape(images, {B, c, side, p, side, p}), {0, 2, 4, 1, 3, 5});
  return proj_(reshape(patches, {B, side * side, c * p * p}));
}

}  // namespace plumb::nn
