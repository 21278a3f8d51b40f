// Derives a model card from the names and shapes of timm's weights.
#include "nn/io/model_card_parts.h"
#include "nn/io/positions.h"

namespace plumb::nn {
namespace {

// Returns the number of blocks with names "PREFIX.N.".
std::int64_t count_blocks(const NamedTensors& tensors, const std::string& prefix) {
  std::int64_t count = 0;
  while (tensors.contains(fmt::format("{}.{}.norm1.weight", prefix, count))) ++count;
  return count;
}

// Widths of timm's models that do not have one head for 64 channels (timm 1.0.31, vision_transformer.py). The files of
// vit_base_patch16_gap_224 (16 heads) and vit_base_patch16_siglip_gap_* (12 heads, without a head for classes) differ
// in no name and no shape of their blocks.
struct Published {
  std::int64_t dim, heads;
  bool averaged;  // only models without a class token, with patches of 16 x 16 pixels
};
constexpr Published published[] = {
    {64, 2, false},     // test_vit
    {768, 16, true},    // vit_base_patch16_gap_224
    {1152, 16, false},  // vit_so400m_*
    {1280, 16, false},  // deit3_huge_patch14_224, vit_huge_*
    {1408, 16, false},  // vit_giant_patch14_224
    {1536, 16, true},   // vit_giantopt_patch16_*
    {1664, 16, false},  // vit_gigantic_patch14_224
};

std::int64_t heads_in_timm(std::int64_t dim, std::int64_t patch, bool token, const std::string& path) {
  for (const Published& p : published)
    if (p.dim == dim && (!p.averaged || (!token && patch == 16))) return p.heads;
  check(dim % 64 == 0,
        "{}: expected a width that is a multiple of 64, the width of a head in timm's models, got {}; give the number "
        "of heads",
        path, dim);
  return dim / 64;
}

const Shape& shape_of(const NamedTensors& tensors, const std::string& name, std::size_t rank, const std::string& path) {
  const auto found = tensors.find(name);
  check(found != tensors.end() && found->second.shape().rank() == static_cast<std::int64_t>(rank),
        "{}: expected weights of timm's VisionTransformer or Cait, or a file that Plumb wrote, got one without "
        "\"{}\" of {} dimensions",
        path, name, rank);
  return found->second.shape();
}

}  // namespace

ModelCard card_of_timm(const NamedTensors& tensors, const std::string& path, std::optional<std::int64_t> heads) {
  const Shape &patches = shape_of(tensors, "patch_embed.proj.weight", 4, path),
              &positions = shape_of(tensors, "pos_embed", 3, path);
  const std::int64_t dim = patches[0], patch = patches[2];
  check(dim > 0 && patches[1] > 0 && patch > 0 && patch == patches[3],
        "{}: expected a patch projection [dim, channels, p, p], got {}", path, patches);
  const std::int64_t classes = shape_of(tensors, "head.weight", 2, path)[0], depth = count_blocks(tensors, "blocks");
  const std::int64_t hidden = shape_of(tensors, "blocks.0.mlp.fc1.weight", 2, path)[0];
  check(hidden > 0, "{}: expected MLPs of at least one hidden unit, got none", path);
  const double mlp_ratio = static_cast<double>(hidden) / static_cast<double>(dim);
  if (const std::int64_t last = count_blocks(tensors, "blocks_token_only"); last > 0) {
    const bool talks = tensors.contains("blocks.0.attn.proj_l.weight");
    return {.options = CaiTOptions{.image = patch * side_of(positions[1], path),
                                   .patch = patch,
                                   .channels = patches[1],
                                   .classes = classes,
                                   .dim = dim,
                                   .depth = depth,
                                   .heads = talks ? shape_of(tensors, "blocks.0.attn.proj_l.weight", 2, path)[0]
                                                  : heads.value_or(dim / 48),
                                   .depth_token_only = last,
                                   .mlp_ratio = mlp_ratio,
                                   .head_mix = talks ? HeadMix::cait : HeadMix::none}};
  }
  const bool token = tensors.contains("cls_token");
  const std::int64_t of_patches = positions[1] - (token && !lacks_token_position(positions[1], token));
  return {.options = ViTOptions{.image = patch * side_of(of_patches, path),
                                .patch = patch,
                                .channels = patches[1],
                                .classes = classes,
                                .dim = dim,
                                .depth = depth,
                                .heads = heads ? *heads : heads_in_timm(dim, patch, token, path),
                                .mlp_ratio = mlp_ratio,
                                .method = tensors.contains("blocks.0.ls1.gamma") ? "layerscale" : "pre",
                                .pool = token ? Pool::token : Pool::mean}};
}

}  // namespace plumb::nn
