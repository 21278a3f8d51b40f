// The ViT that a study is about, as far as the command line decides it.
#pragma once

#include <array>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/drop_options.h"
#include "nn/models/vit.h"

namespace plumb::lab {

// Whether everything is equal but the gate, or as each method's paper prescribes (nn::Recipe).
enum class RecipeKind { shared, paper };
constexpr auto names_of(RecipeKind) { return std::array{"shared", "paper"}; }

// The base of the weights: as the recipe has it; the same with its 0.02 at this width (scaled_normal); or one of
// nn::Base, under its name, for all methods.
enum class WeightInit { recipe, recipe_scaled, truncated_normal, xavier, xavier_normal, xavier_packed, scaled_normal };
constexpr auto names_of(WeightInit) {
  return std::array{"recipe",        "recipe_scaled", "truncated_normal", "xavier",
                    "xavier_normal", "xavier_packed", "scaled_normal"};
}

struct NetworkOptions {
  std::int64_t dim = 64, heads = 2, patch = 8;
  nn::Pool pool = nn::Pool::mean;
  RecipeKind recipe = RecipeKind::shared;
  WeightInit weight_init = WeightInit::recipe;
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
