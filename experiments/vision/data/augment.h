// The augmentation of training images, as in timm for DeiT and CaiT. The result depends only on the seed, the epoch,
// the index of the sample and the number of the copy.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/vision/data/augmentation.h"
#include "experiments/vision/data/image_ops.h"
#include "experiments/vision/data/image_set.h"
#include "experiments/vision/data/rand_augment.h"

namespace plumb::vision {

// The shift and flip of one image. If `flip` is true, the image is mirrored first. Pixel (y, x) of the result is then
// pixel (y + shift_y, x + shift_x) of the image.
struct Placement {
  std::int64_t shift_y = 0, shift_x = 0;
  bool flip = false;
};

// Draws the placement of a sample. The random numbers come from Philox with Purpose::augmentation, the key (seed,
// "data.augment") and the epoch as the step. Sample i has the elements 8 i ... 8 i + 7; the first three of these
// elements give the vertical shift, the horizontal shift and the flip.
Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch,
                         std::int64_t sample);

// The shifted and flipped image, which has the same size as `image`.
Pixels placed(const Pixels& image, const Placement& placement);

// Draws the part of an image for a random resized crop. The part has at least `least_share` of the area. The function
// draws the area and the ratio of the sides up to ten times, until the part fits into the image. If no draw fits, the
// result is the largest centred part with a ratio of the sides between 3:4 and 4:3.
PixelBox draw_crop(std::int64_t height, std::int64_t width, double least_share, RandomStream& stream);
// Draws the rectangle that is erased. If the height of the result is 0, nothing is erased.
PixelBox draw_erasure(std::int64_t height, std::int64_t width, double probability, RandomStream& stream);

// One occurrence of an image in training: copy number `copy` (counted from 0) of the image `sample` in an epoch.
struct Occurrence {
  std::uint64_t seed;
  std::uint32_t epoch;
  std::int64_t sample, copy;
};
// The image [channels, height, width] of the set after crop, shift, flip and RandAugment, before normalization. `fill`
// is the value of each channel for pixels that a geometric operation of RandAugment uncovers.
Pixels augmented(const ImageSet& set, const Occurrence& what, const Augmentation& augmentation,
                 const std::vector<std::uint8_t>& fill);
// Applies random erasing to a normalized image [channels, height, width], in place.
void erase_image(float* image, std::int64_t channels, std::int64_t height, std::int64_t width, const Occurrence& what,
                 double probability);

// Applies mixup or CutMix to a batch [count, channels, height, width], in place: each image is mixed with the image at
// the same position in the reversed batch. Returns the share of its original content that each image keeps.
double mix_batch(std::vector<float>& images, std::int64_t count, std::int64_t channels, std::int64_t height,
                 std::int64_t width, const Augmentation& augmentation, RandomStream& stream);

}  // namespace plumb::vision
