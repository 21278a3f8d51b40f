// The ViT that a study is about, as far as the command line decides it.
#pragma once

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/drop_options.h"
#include "nn/models/vit.h"

namespace plumb::lab {

struct NetworkOptions {
  std::int64_t dim = 64, heads = 2, patch = 8;
  std::string pool = "mean";
  std::string recipe =
      "shared";  // everything equal but the gate; or "paper": as each method's paper prescribes (nn::Recipe)
  // The base of the weights: as the recipe has it; the same with its 0.02 at this width (scaled_normal); or one of
  // nn::base_names() for all methods.
  std::string weight_init = "recipe";
  DropOptions drop;

  void declare(Cli& cli);
  // Throws UsageError where they do not suit each other or the images.
  void check_for(const ImageSet& images) const;
  nn::Recipe recipe_of(const nn::Method& method) const;
  // Of `steps` training steps, for images like these. Depth, gate and recipe are as nn::ViTOptions has them.
  nn::ViTOptions vit(const ImageSet& images, std::int64_t steps) const;

  // For reports.
  std::string describe(const ImageSet& images) const;  // "ViT, dim 64, 2 heads, patch 8, 17 tokens"
  std::string describe_recipe() const;
  std::string describe_warmup(std::optional<std::int64_t> given) const;
  std::string describe_recipe_of(
      const nn::Method& method) const;  // "Xavier uniform, a head that starts at 0, no warm-up (its source)"
  std::string describe_drop_key(const ImageSet& images) const;
};

}  // namespace plumb::lab
