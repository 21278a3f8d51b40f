// What is done to training images, as timm does it for DeiT and CaiT: a function of (seed, epoch, sample, copy) only.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/data/rand_augment.h"

namespace plumb::lab {

struct Augmentation {
  std::int64_t crop_padding = 0;  // the image is shifted by up to so many pixels each way; zero bytes move in
  bool flip =
      false;  // mirrored left to right half of the time; not for sets whose classes are mirror images (glyphs, digits)
  // Szegedy et al. 2015: a part of the image of at least this share of its area, sides 3:4 to 4:3, resized (bicubic);
  // 1: none. In place of crop_padding.
  double crop_scale = 1;
  RandAugment rand_augment = {};
  double erase =
      0;  // Zhong et al. 2017: probability that a rectangle of 2 % to a third of the area becomes normal noise
  double mixup = 0, cutmix = 0;  // Zhang et al. 2018, Yun et al. 2019: alpha of Beta(alpha, alpha); of both, each batch
                                 // draws one. 0: not
  std::int64_t repeats = 1;  // Hoffer et al. 2020: each image comes so many times in a row, augmented anew; an epoch
                             // has that share of the images

  bool any() const { return places() || rand_augment.operations > 0 || erase > 0 || mixes() || repeats > 1; }
  bool places() const { return crop_padding > 0 || flip || crop_scale < 1; }
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

// What DeiT and CaiT train with, for images of this side: at up to 32 pixels padding and crop take the place of the
// resized crop, as in their code.
Augmentation deit_augmentation(std::int64_t side);
// Padding, crop and flips.
Augmentation light_augmentation();

// What happens to one image: pixel (y, x) of the result is (y + shift_y, x + shift_x) of the image, mirrored first if
// `flip`.
struct Placement {
  std::int64_t shift_y = 0, shift_x = 0;
  bool flip = false;
};

// Philox purpose augmentation, key (seed, "data.augment"), step = epoch; sample i owns the elements 8 i ... 8 i + 7:
// vertical shift, horizontal shift, flip.
Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch,
                         std::int64_t sample);

Pixels placed(const Pixels& image, const Placement& placement);

// Where a resized crop is taken: ten tries of area and sides, as drawn, then the largest part in the middle whose sides
// are within 3:4 and 4:3.
Box draw_crop(std::int64_t height, std::int64_t width, double least_share, RandomStream& stream);
// Which rectangle is erased; of height 0: none.
Box draw_erasure(std::int64_t height, std::int64_t width, double probability, RandomStream& stream);

// Which image, in which epoch, the how-manieth copy there.
struct Occurrence {
  std::uint64_t seed;
  std::uint32_t epoch;
  std::int64_t sample, copy;
};
// One image with all that happens to it before it is normalised, [channels, height, width] of the set. `fill`: a value
// for each channel.
Pixels augmented(const ImageSet& set, const Occurrence& what, const Augmentation& augmentation,
                 const std::vector<std::uint8_t>& fill);
// And after: erasing, in place.
void erase_image(float* image, std::int64_t channels, std::int64_t height, std::int64_t width, const Occurrence& what,
                 double probability);

// Mixes a batch [count, channels, height, width] with itself in reverse order; returns the share of its own that each
// image keeps.
double mix_batch(std::vector<float>& images, std::int64_t count, std::int64_t channels, std::int64_t height,
                 std::int64_t width, const Augmentation& augmentation, RandomStream& stream);

}  // namespace plumb::lab
