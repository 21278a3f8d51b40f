#include "experiments/common/network_options.h"

#include "experiments/common/cli.h"
#include "experiments/common/run_options.h"

namespace plumb::lab {
namespace {

// Along a side of the images.
std::int64_t patches(const NetworkOptions& o, const ImageSet& images) { return images.height / o.patch; }

}  // namespace

void NetworkOptions::declare(Cli& cli) {
  cli.section("Model");
  cli.option("--dim", &dim, "Width").at_least(1).at_most(largest_size);
  cli.option("--heads", &heads, "Attention heads").at_least(1).at_most(largest_size);
  cli.option("--patch", &patch, "Side of a patch in pixels").at_least(1).at_most(largest_size);
  cli.option("--init", &init, "Base of the initial weights: the same for all gates, or each paper's own").one_of("init", {"shared", "paper"});
  drop.declare(cli);
}

void NetworkOptions::check_for(const ImageSet& images) const {
  usage_check(dim % heads == 0, "--dim {} is not a multiple of --heads {}", dim, heads);
  usage_check(images.height % patch == 0, "--patch {} does not divide the image side {}", patch, images.height);
  describe_drop_key(images);  // throws for a shape that does not fit the grid
}

nn::ViTOptions NetworkOptions::vit(const ImageSet& images, std::int64_t steps) const {
  return {.image = images.height,
          .channels = images.channels,
          .patch = patch,
          .classes = images.classes,
          .dim = dim,
          .heads = heads,
          .drop_key = drop.key(),
          .attention_dropout = drop.attn_drop,
          .drop_head = drop.head(steps),
          .drop_path = drop.path(),
          .paper_init = init == "paper"};
}

std::string NetworkOptions::describe(const ImageSet& images) const {
  const std::int64_t side = patches(*this, images);
  return fmt::format("ViT, dim {}, {} heads, patch {}, {} tokens", dim, heads, patch, side * side + 1);
}

std::string NetworkOptions::describe_init() const {
  return init == "paper" ? "each paper's own base" : "truncated normal, std 0.02 (patch embedding: uniform), the same draws for all gates";
}

std::string NetworkOptions::describe_drop_key(const ImageSet& images) const {
  const std::int64_t side = patches(*this, images);
  return drop.describe_key(side * side + 1, {side, side});
}

}  // namespace plumb::lab
