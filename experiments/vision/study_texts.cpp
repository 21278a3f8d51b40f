// The texts of a study of images: notes for the terminal and settings for reports.
#include <fmt/format.h>

#include "experiments/lab/console.h"
#include "experiments/vision/study.h"
#include "nn/gates/method.h"

namespace plumb::vision {

void Study::check_images(const DataFacts& data) {
  if (!data.note.empty() && !cli().typed("--image-size"))
    note_error(fmt::format("{}{}; --image-size native keeps their size\n", data.note,
                           parts_.network ? ": " + network_.describe(image_sizes(data)) : ""));
}

NamedTexts Study::texts(const DataFacts& data) const {
  const auto by_axis = [&](const char* option) { return declaration_of(*this).varies(option); };
  const ImageSet images = image_sizes(data);
  NamedTexts texts;
  if (parts_.optimization)
    texts.emplace_back("augmentation", augmentation_.describe(
                                           augmentation_.make(data.name, images, declaration_of(*this).options.batch)));
  if (!parts_.network) return texts;
  const DropOptions& drop = network_.drop;
  texts.insert(
      texts.end(),
      {{"model", network_.describe(images)},
       {"recipe", by_axis("--recipe") ? "varied" : network_.describe_recipe()},
       {"DropKey", by_axis("--drop-key") ? "varied" : network_.describe_drop_key(images)},
       {"attention dropout", by_axis("--attn-drop") ? "varied"
                             : drop.attn_drop > 0   ? fmt::format("{:g}", drop.attn_drop)
                                                    : "none"},
       {"DropHead",
        drop.drop_head > 0 ? fmt::format("{:g} at the ends of training, 0 at its middle", drop.drop_head) : "none"},
       {"drop-path", by_axis("--drop-path") ? "varied" : drop.describe_path()}});
  if (const AxisData* gates = declaration_of(*this).axis("gate"); gates && network_.recipe == RecipeKind::paper)
    if (const auto* names = gates->values_of<std::string>())
      for (const std::string& name : *names)
        texts.emplace_back("recipe of " + name, network_.describe_recipe_of(nn::method_named(name)));
  return texts;
}

}  // namespace plumb::vision
