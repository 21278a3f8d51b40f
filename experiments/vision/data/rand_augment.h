// RandAugment (Cubuk et al. 2020) as in timm's "rand-m9-mstd0.5-inc1", the setting for DeiT and CaiT.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/data/random_stream.h"
#include "experiments/vision/data/augmentation.h"
#include "experiments/vision/data/image_ops.h"

namespace plumb::vision {

// The names of the operations. The strength of an operation depends on the magnitude m:
//   auto_contrast, equalize, invert           have no strength
//   rotate                                    by 3 m degrees, in either direction
//   posterize                                 to 4 - floor(0.4 m) bits
//   solarize                                  with the threshold 256 - floor(25.6 m)
//   solarize_add                              with the summand floor(11 m)
//   colour, contrast, brightness, sharpness   with the factor max(0.1, 1 +- 0.09 m)
//   shear_x, shear_y                          by 0.03 m, in either direction
//   translate_x, translate_y                  by 0.045 m of the side, in either direction
const std::vector<std::string>& rand_augment_names();

// The first function applies one operation at `magnitude`, clipped to [0, 10]; `stream` decides the direction. The
// function throws Error if `name` is not an operation. The second function draws operations from `stream`, and applies
// each drawn operation with probability 1/2. Geometric operations interpolate bicubically, as in DeiT, and give
// uncovered pixels the value `fill`.
Pixels apply(const std::string& name, double magnitude, Pixels image, const std::vector<std::uint8_t>& fill,
             RandomStream& stream);
Pixels apply(const RandAugment& augment, Pixels image, const std::vector<std::uint8_t>& fill, RandomStream& stream);

}  // namespace plumb::vision
