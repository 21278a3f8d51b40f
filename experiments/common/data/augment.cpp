#include "experiments/common/data/augment.h"

#include <algorithm>

#include "core/random.h"

namespace plumb::lab {

Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch, std::int64_t sample) {
  const Draw draw = element_draw(random_key(seed, "data.augment"), epoch, Purpose::augmentation, static_cast<std::uint64_t>(sample));
  const std::int64_t p = augmentation.crop_padding;
  const auto shift = [&](int i) { return static_cast<std::int64_t>(draw16(draw, i)) * (2 * p + 1) / 65536 - p; };
  return {shift(0), shift(1), augmentation.flip && draw16(draw, 2) < 0x8000u};
}

void place_image(const ImageSet& set, std::int64_t index, const Placement& placement, std::uint8_t* out) {
  const std::int64_t height = set.height, width = set.width;
  const std::uint8_t* image = set.image(index);
  // Columns of the result that lie on the image.
  const std::int64_t first = std::clamp<std::int64_t>(-placement.shift_x, 0, width), last = std::clamp(width - placement.shift_x, first, width);
  for (std::int64_t c = 0; c < set.channels; ++c)
    for (std::int64_t y = 0; y < height; ++y, out += width) {
      const std::int64_t from = y + placement.shift_y;
      std::fill_n(out, width, std::uint8_t{0});
      if (from < 0 || from >= height) continue;
      const std::uint8_t* row = image + (c * height + from) * width;
      for (std::int64_t x = first; x < last; ++x) {
        const std::int64_t column = x + placement.shift_x;
        out[x] = row[placement.flip ? width - 1 - column : column];
      }
    }
}

}  // namespace plumb::lab
