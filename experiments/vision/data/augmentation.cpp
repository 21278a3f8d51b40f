#include "experiments/vision/data/augmentation.h"

namespace plumb::vision {

Augmentation deit_augmentation(std::int64_t side) {
  Augmentation a{
      .flip = true, .rand_augment = {.operations = 2}, .erase = 0.25, .mixup = 0.8, .cutmix = 1, .repeats = 3};
  if (side <= 32)
    a.crop_padding = 4;
  else
    a.crop_scale = 0.08;
  return a;
}

Augmentation light_augmentation() { return {.crop_padding = 4, .flip = true}; }

}  // namespace plumb::vision
