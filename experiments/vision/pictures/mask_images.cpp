#include "experiments/vision/pictures/mask_images.h"

#include <set>

#include "core/random.h"
#include "experiments/vision/pictures/attention_images.h"

namespace plumb::vision {

Pixels mask_picture(const KeyMask& drop, KeyGrid grid, std::int64_t keys, std::int64_t query) {
  constexpr std::int64_t scale = 8;  // pixels per patch
  std::vector<std::uint8_t> dropped(static_cast<std::size_t>(keys));
  drop_keys(drop, 0, 0, 1, 0, query, dropped);
  Pixels image{3, grid.height * scale + 1, grid.width * scale + 1, {}};
  image.bytes.resize(static_cast<std::size_t>(3 * image.height * image.width));
  for (std::int64_t c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < image.height; ++y)
      for (std::int64_t x = 0; x < image.width; ++x) {
        const bool line = y % scale == 0 || x % scale == 0;
        const bool lost =
            !line && dropped[static_cast<std::size_t>(keys - grid.cells() + y / scale * grid.width + x / scale)] != 0;
        image.plane(c)[y * image.width + x] = line ? 200 : !lost ? 245 : c == 0 ? 40 : 60;
      }
  return image;
}

std::optional<Pixels> masks_picture(const nn::Stack& stack, std::uint64_t seed, std::int64_t tokens) {
  constexpr std::int64_t rows_shown = 4;  // number of queries per block
  const auto count = std::ssize(stack.blocks());
  std::vector<Pixels> masks;
  bool drops = false;
  for (const std::int64_t block : std::set{std::int64_t{0}, count / 2, count - 1}) {
    const auto* attention = dynamic_cast<const nn::AttentionBranch*>(
        &stack.blocks()[static_cast<std::size_t>(block)].junctions().front()->branch());
    if (!attention) return std::nullopt;
    const nn::AttentionOptions& o = attention->options();
    const nn::DropKey& d = o.drop_key;
    const KeyMask drop =
        key_mask(d.rate, d.shape, d.window, d.sharing, o.grid, tokens, random_key(seed, *attention->path()));
    drops = drops || drop.threshold > 0;
    for (std::int64_t row = 0; row < rows_shown; ++row)
      masks.push_back(mask_picture(drop, o.grid, tokens, row * tokens / rows_shown));
  }
  return drops ? std::optional(beside(masks, rows_shown, mask_gap)) : std::nullopt;
}

void attach_masks(lab::Trial& trial, const nn::Stack& stack, std::int64_t tokens) {
  if (!is_of_first_seed(trial)) return;
  if (const std::optional<Pixels> picture = masks_picture(stack, trial.seed(), tokens))
    attach_picture(trial, "masks", *picture);
}

}  // namespace plumb::vision
