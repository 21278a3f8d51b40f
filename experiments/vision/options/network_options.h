// The command-line options for the network of a study, which is a ViT or, in bin/vit, a CaiT.
#pragma once

#include <array>

#include "experiments/vision/data/image_set.h"
#include "experiments/vision/options/drop_options.h"
#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/models/vit.h"

namespace plumb::vision {

// The values of --model of bin/vit. The networks of all other programs are ViTs.
enum class NetworkModel { vit, cait };
constexpr auto names_of(NetworkModel) { return std::array{"vit", "cait"}; }
// The name of a network in messages and reports: "ViT" or "CaiT".
inline const char* title(NetworkModel model) { return model == NetworkModel::cait ? "CaiT" : "ViT"; }

// The values of --recipe. shared: everything except the gate is equal for all methods. paper: each method is trained as
// its paper prescribes (nn::Recipe).
enum class RecipeKind { shared, paper };
constexpr auto names_of(RecipeKind) { return std::array{"shared", "paper"}; }

// The values of --weight-init, which selects the base distribution of the weights. recipe: the distribution of the
// recipe. recipe_scaled: the same, but with nn::Base::scaled_normal in place of truncated_normal, whose deviation of
// 0.02 is that of a width of 384. In a network of width 64, 0.02 makes the branches very small: a comparison then
// mostly shows how fast a method outgrows small branches. Every other value: the nn::Base of the same name, for all
// methods.
enum class WeightInit { recipe, recipe_scaled, truncated_normal, xavier, xavier_normal, xavier_packed, scaled_normal };
constexpr auto names_of(WeightInit) {
  return std::array{"recipe",        "recipe_scaled", "truncated_normal", "xavier",
                    "xavier_normal", "xavier_packed", "scaled_normal"};
}

// The values of the network options.
struct NetworkOptions {
  NetworkModel model = NetworkModel::vit;  // an option of bin/vit only
  std::int64_t dim = 64, heads = 2, patch = 8;
  nn::Pool pool = nn::Pool::mean;
  RecipeKind recipe = RecipeKind::shared;
  WeightInit weight_init = WeightInit::recipe_scaled;
  DropOptions drop;

  // Declares the options in the section Model, and the options of `drop` in the section Dropping.
  void declare(Cli& cli);
  // Throws UsageError if the options do not suit each other or the images.
  void check_for(const ImageSet& images) const;
  // The training recipe of a method under --recipe and --weight-init.
  nn::Recipe recipe_of(const nn::Method& method) const;
  // The options of the ViT for images of the same size as `images`, trained for `steps` steps. Depth, gate and recipe
  // have the defaults of nn::ViTOptions.
  nn::ViTOptions vit(const ImageSet& images, std::int64_t steps) const;

  // Each of these functions returns a text for reports. describe_drop_key() describes a block over the patches of a
  // CaiT.
  std::string describe(const ImageSet& images) const;  // "ViT, dim 64, 2 heads, patch 8, 17 tokens"
  std::string describe_recipe() const;
  std::string describe_warmup() const;  // of the recipe
  // A text such as "Xavier uniform, zero head, no warm-up (source of the recipe)".
  std::string describe_recipe_of(const nn::Method& method) const;
  std::string describe_drop_key(const ImageSet& images) const;
};

}  // namespace plumb::vision
