// Random crops and mirroring: a function of (seed, epoch, sample) only.
#pragma once

#include <cstdint>

#include "experiments/common/data/image_set.h"

namespace plumb::lab {

struct Augmentation {
  std::int64_t crop_padding = 0;  // the image is shifted by up to so many pixels each way; zero bytes move in
  bool flip = false;              // mirrored left to right half of the time; not for sets whose classes are mirror images (glyphs, digits)

  bool any() const { return crop_padding > 0 || flip; }
};

// What happens to one image: pixel (y, x) of the result is (y + shift_y, x + shift_x) of the image, mirrored first if `flip`.
struct Placement {
  std::int64_t shift_y = 0, shift_x = 0;
  bool flip = false;
};

// Philox purpose augmentation, key (seed, "data.augment"), step = epoch; sample i owns the elements 8 i ... 8 i + 7: vertical shift,
// horizontal shift, flip.
Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch, std::int64_t sample);

// Writes image `index` of the set, placed, to `out` [channels, height, width].
void place_image(const ImageSet& set, std::int64_t index, const Placement& placement, std::uint8_t* out);

}  // namespace plumb::lab
