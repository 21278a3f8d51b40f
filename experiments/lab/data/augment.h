// The augmentation of training images, as in timm for DeiT and CaiT. The result depends only on seed, epoch, sample and
// copy.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/data/rand_augment.h"

namespace plumb::lab {

// The settings of an augmentation.
struct Augmentation {
  // Largest shift of the image in each direction, in pixels. The uncovered border is filled with zero bytes.
  std::int64_t crop_padding = 0;
  // Mirror the image left to right with probability 1/2. Not for sets in which a mirrored image may belong to another
  // class (glyphs, digits).
  bool flip = false;
  // Szegedy et al. 2015: resize (bicubic) a random part of the image. This is the smallest area of the part as a share
  // of the image; its sides have ratios from 3:4 to 4:3. 1: no resized crop. Replaces crop_padding.
  double crop_scale = 1;
  RandAugment rand_augment = {};
  // Zhong et al. 2017: the probability that a rectangle of 2 % to a third of the area is replaced by normal noise.
  double erase = 0;
  // Zhang et al. 2018 and Yun et al. 2019: alpha of Beta(alpha, alpha); 0: off. If both are on, each batch uses one of
  // them, drawn with probability 1/2.
  double mixup = 0, cutmix = 0;
  // Hoffer et al. 2020: the number of times that each image occurs in a row, augmented differently each time. An epoch
  // then contains only 1 / repeats of the images.
  std::int64_t repeats = 1;

  // Whether the augmentation changes anything.
  bool any() const { return places() || rand_augment.operations > 0 || erase > 0 || mixes() || repeats > 1; }
  bool places() const { return crop_padding > 0 || flip || crop_scale < 1; }  // whether it shifts, crops or mirrors
  bool mixes() const { return mixup > 0 || cutmix > 0; }                      // whether it mixes images of a batch
};

// The augmentation that DeiT and CaiT train with, for images with this side in pixels. Up to 32 pixels, padding and
// crop replace the resized crop, as in their code.
Augmentation deit_augmentation(std::int64_t side);
// Padding, crop and flips only.
Augmentation light_augmentation();

// The shift and flip of one image. Pixel (y, x) of the result is pixel (y + shift_y, x + shift_x) of the image, which
// is first mirrored if `flip` is true.
struct Placement {
  std::int64_t shift_y = 0, shift_x = 0;
  bool flip = false;
};

// Draws the placement of a sample. Random numbers: Philox with Purpose::augmentation, key (seed, "data.augment") and
// step = epoch. Sample i has the elements 8 i ... 8 i + 7, of which the first three give vertical shift, horizontal
// shift and flip.
Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch,
                         std::int64_t sample);

// The image after shift and flip, of the same size.
Pixels placed(const Pixels& image, const Placement& placement);

// Draws the part of an image that a resized crop takes, of at least `least_share` of the area. Draws area and ratio of
// the sides up to ten times until the part fits into the image. If none fits, the result is the largest centred part
// whose sides have a ratio from 3:4 to 4:3.
Box draw_crop(std::int64_t height, std::int64_t width, double least_share, RandomStream& stream);
// Draws the rectangle that is erased. A height of 0 means that nothing is erased.
Box draw_erasure(std::int64_t height, std::int64_t width, double probability, RandomStream& stream);

// One occurrence of an image in training: the image `sample` in an epoch, and the number of its copy (counted from 0)
// if images are repeated.
struct Occurrence {
  std::uint64_t seed;
  std::uint32_t epoch;
  std::int64_t sample, copy;
};
// The image after crop, shift, flip and RandAugment, before it is normalised: [channels, height, width] of the set.
// `fill` has the value of each channel for pixels that a geometric operation of RandAugment uncovers.
Pixels augmented(const ImageSet& set, const Occurrence& what, const Augmentation& augmentation,
                 const std::vector<std::uint8_t>& fill);
// Applies random erasing to a normalised image [channels, height, width], in place.
void erase_image(float* image, std::int64_t channels, std::int64_t height, std::int64_t width, const Occurrence& what,
                 double probability);

// Applies mixup or CutMix: mixes a batch [count, channels, height, width], in place, with the same batch in reverse
// order. Returns the share that each image keeps of its original content; the rest comes from its partner.
double mix_batch(std::vector<float>& images, std::int64_t count, std::int64_t channels, std::int64_t height,
                 std::int64_t width, const Augmentation& augmentation, RandomStream& stream);

}  // namespace plumb::lab
