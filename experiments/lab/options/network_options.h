// The command-line options for the ViT of a study.
#pragma once

#include <array>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/drop_options.h"
#include "nn/models/vit.h"

namespace plumb::lab {

// shared: everything except the gate is equal for all methods. paper: each method trains as its paper prescribes
// (nn::Recipe).
enum class RecipeKind { shared, paper };
constexpr auto names_of(RecipeKind) { return std::array{"shared", "paper"}; }

// The base distribution of the weights. recipe: that of the recipe. recipe_scaled: that of the recipe, but
// nn::Base::scaled_normal in place of truncated_normal, whose deviation of 0.02 does not depend on the width. The
// other values: the nn::Base of the same name for all methods.
enum class WeightInit { recipe, recipe_scaled, truncated_normal, xavier, xavier_normal, xavier_packed, scaled_normal };
constexpr auto names_of(WeightInit) {
  return std::array{"recipe",        "recipe_scaled", "truncated_normal", "xavier",
                    "xavier_normal", "xavier_packed", "scaled_normal"};
}

// The values of the network options.
struct NetworkOptions {
  std::int64_t dim = 64, heads = 2, patch = 8;
  nn::Pool pool = nn::Pool::mean;
  RecipeKind recipe = RecipeKind::shared;
  WeightInit weight_init = WeightInit::recipe;
  DropOptions drop;

  // Declares the options in the section Model, and those of `drop` in the section Dropping.
  void declare(Cli& cli);
  // Throws UsageError if the options do not suit each other or the images.
  void check_for(const ImageSet& images) const;
  // The training recipe of a method under --recipe and --weight-init.
  nn::Recipe recipe_of(const nn::Method& method) const;
  // The ViT for images like these, trained for `steps` steps. Depth, gate and recipe have the defaults of
  // nn::ViTOptions.
  nn::ViTOptions vit(const ImageSet& images, std::int64_t steps) const;

  // Texts for reports.
  std::string describe(const ImageSet& images) const;  // "ViT, dim 64, 2 heads, patch 8, 17 tokens"
  std::string describe_recipe() const;
  std::string describe_warmup(std::optional<std::int64_t> given) const;
  // "Xavier uniform, zero head, no warm-up (source of the recipe)".
  std::string describe_recipe_of(const nn::Method& method) const;
  std::string describe_drop_key(const ImageSet& images) const;
};

}  // namespace plumb::lab
