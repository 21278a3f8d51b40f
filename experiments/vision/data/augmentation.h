// The settings of the augmentation of training images.
#pragma once

#include <cstdint>

namespace plumb::vision {

// The settings of RandAugment.
struct RandAugment {
  std::int64_t operations = 0;  // the number of operations for each image, drawn with replacement; 0: none
  // The magnitude of each operation is drawn from a normal distribution with the mean `magnitude` and the standard
  // deviation `deviation`, and then clipped to [0, 10].
  double magnitude = 9, deviation = 0.5;
};

// The settings of an augmentation.
struct Augmentation {
  // The largest shift of the image in each direction, in pixels. The uncovered border is filled with zero bytes.
  std::int64_t crop_padding = 0;
  // Mirrors the image left to right with probability 1/2. Set `flip` to false for data sets in which a mirrored image
  // may belong to another class (glyphs, digits).
  bool flip = false;
  // Random resized crop (Szegedy et al. 2015): a random part of the image is resized bicubically to the size of the
  // image. `crop_scale` is the smallest area of the part as a share of the image. The ratio of the part's sides is
  // between 3:4 and 4:3. The value 1 turns the resized crop off. A value below 1 turns `crop_padding` off.
  double crop_scale = 1;
  RandAugment rand_augment = {};
  // Random erasing (Zhong et al. 2017): the probability that a rectangle of 2 % to a third of the area is replaced by
  // normal noise.
  double erase = 0;
  // The alpha of Beta(alpha, alpha) for mixup (Zhang et al. 2018) and for CutMix (Yun et al. 2019). 0 means off. If
  // mixup and CutMix are both on, each batch uses one of the two methods, drawn with probability 1/2.
  double mixup = 0, cutmix = 0;
  // Repeated augmentation (Hoffer et al. 2020): the number of copies of each image in a row. Each copy is augmented
  // differently. If `repeats` is above 1, an epoch contains only 1 / repeats of the images.
  std::int64_t repeats = 1;

  // Whether the augmentation changes the images or their order.
  bool any() const { return places() || rand_augment.operations > 0 || erase > 0 || mixes() || repeats > 1; }
  // Whether images are shifted, cropped or mirrored.
  bool places() const { return crop_padding > 0 || flip || crop_scale < 1; }
  // Whether images of a batch are mixed.
  bool mixes() const { return mixup > 0 || cutmix > 0; }
};

// The augmentation with which DeiT and CaiT are trained, for images whose side has `side` pixels. As in the code of
// DeiT, images of up to 32 pixels are padded and cropped, and larger images get a random resized crop.
Augmentation deit_augmentation(std::int64_t side);
// An augmentation that only pads, crops and flips.
Augmentation light_augmentation();

}  // namespace plumb::vision
