#include "experiments/vision/options/network_options.h"

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"

namespace plumb::vision {
namespace {

// The number of patches along a side of the images.
std::int64_t patches(const NetworkOptions& o, const ImageSet& images) { return images.height / o.patch; }

// The base with the name of `init`, which must not be `recipe` or `recipe_scaled`.
nn::Base base_of(WeightInit init) { return enum_named<nn::Base>("base", enum_name(init)); }

}  // namespace

void NetworkOptions::declare(Cli& cli) {
  cli.section("Model");
  cli.option("--dim", &dim, "Width of the model").at_least(1).at_most(largest_size);
  cli.option("--heads", &heads, "Number of attention heads").at_least(1).at_most(largest_size);
  cli.option("--patch", &patch, "Side of a patch in pixels").at_least(1).at_most(largest_size);
  cli.option("--pool", &pool, "Input of the classifier head (token: a class token; mean: the mean of the patch tokens)")
      .one_of("pool");
  cli.option("--recipe", &recipe,
             "Training recipe (shared: everything except the gate is equal for all methods; paper: initial weights, "
             "head, learning rates of scalars and warm-up from each method's paper, or DeiT's if the paper gives none)")
      .one_of("recipe");
  cli.option("--weight-init", &weight_init,
             "Base distribution of the initial weights, before a method scales them. recipe: as set by --recipe. "
             "recipe_scaled: the same, but with DeiT's deviation of 0.02, which is for a width of 384, scaled to the "
             "width. One base for all methods: truncated_normal, xavier, xavier_normal, xavier_packed, scaled_normal")
      .one_of("base");
  drop.declare(cli);
}

nn::Recipe NetworkOptions::recipe_of(const nn::Method& method) const {
  nn::Recipe r = recipe == RecipeKind::paper ? method.paper : nn::Recipe();
  if (weight_init == WeightInit::recipe ||
      (weight_init == WeightInit::recipe_scaled && r.base != nn::Base::truncated_normal))
    return r;
  r.base = weight_init == WeightInit::recipe_scaled ? nn::Base::scaled_normal : base_of(weight_init);
  if (!r.source.empty()) r.source += "; weights as set by --weight-init";
  return r;
}

void NetworkOptions::check_for(const ImageSet& images) const {
  usage_check(dim % heads == 0, "--dim {} is not a multiple of --heads {}; change one of them", dim, heads);
  usage_check(images.height % patch == 0, "--patch {} does not divide the image side {}; choose another patch", patch,
              images.height);
  describe_drop_key(images);  // throws if the shape does not fit on the grid
}

nn::ViTOptions NetworkOptions::vit(const ImageSet& images, std::int64_t steps) const {
  return {.image = images.height,
          .patch = patch,
          .channels = images.channels,
          .classes = images.classes,
          .dim = dim,
          .heads = heads,
          .drop_key = drop.key(),
          .attention_dropout = drop.attn_drop,
          .drop_head = drop.head(steps),
          .drop_path = drop.path(),
          .pool = pool};
}

std::string NetworkOptions::describe(const ImageSet& images) const {
  const std::int64_t side = patches(*this, images);
  return fmt::format("{}, dim {}, {} heads, patch {}, {}", title(model), dim, heads, patch,
                     model == NetworkModel::cait ? fmt::format("{} tokens, then a class token", side * side)
                     : pool == nn::Pool::mean    ? fmt::format("mean of {} tokens", side * side)
                                                 : fmt::format("{} tokens", side * side + 1));
}

std::string NetworkOptions::describe_recipe() const {
  if (recipe == RecipeKind::shared)
    return fmt::format(
        "shared, everything equal except the gate: weights {} (patch embedding: uniform) from the same random draws, "
        "an ordinary head, one learning rate",
        description(recipe_of(nn::Method()).base));
  const std::string own = "different for each method: ",
                    rest = "head, learning rates of scalars and warm-up of its paper";
  if (weight_init == WeightInit::recipe) return own + "weights, " + rest;
  if (weight_init == WeightInit::recipe_scaled)
    return own + "weights, " + rest + "; in place of a std of 0.02: " + description(nn::Base::scaled_normal);
  return own + rest + "; weights: " + description(base_of(weight_init));
}

std::string NetworkOptions::describe_warmup() const { return recipe == RecipeKind::paper ? "as in each paper" : "0"; }

std::string NetworkOptions::describe_recipe_of(const nn::Method& method) const {
  const nn::Recipe r = recipe_of(method);
  return fmt::format("{}, {} head{}, {}{}", description(r.base), r.zero_head ? "zero" : "ordinary",
                     r.scalar_rate == 1 ? "" : fmt::format(", scalars at {:g} times the learning rate", r.scalar_rate),
                     r.warmup > 0 ? fmt::format("warm-up of {:.3g} % of the steps", 100 * r.warmup) : "no warm-up",
                     r.source.empty() ? "" : fmt::format(" ({})", r.source));
}

std::string NetworkOptions::describe_drop_key(const ImageSet& images) const {
  const std::int64_t side = patches(*this, images);
  return drop.describe_key(side * side + (model == NetworkModel::vit && pool == nn::Pool::token), {side, side});
}

}  // namespace plumb::vision
