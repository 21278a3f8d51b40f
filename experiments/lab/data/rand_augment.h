// RandAugment (Cubuk et al. 2020) as in timm's "rand-m9-mstd0.5-inc1", which DeiT and CaiT train with.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/data/random_stream.h"

namespace plumb::lab {

// The settings of RandAugment.
struct RandAugment {
  std::int64_t operations = 0;  // number of operations per image, drawn with replacement from the list below; 0: none
  // Mean and standard deviation of the normal draw of the magnitude of each operation, which is clipped to [0, 10].
  double magnitude = 9, deviation = 0.5;
};

// The names of the operations. Their strength increases with the magnitude m:
//   auto_contrast, equalize, invert
//   rotate         by 3 m degrees, either way
//   posterize      to 4 - floor(0.4 m) bits
//   solarize       with the threshold 256 - floor(25.6 m)
//   solarize_add   with floor(11 m)
//   colour, contrast, brightness, sharpness   by max(0.1, 1 +- 0.09 m)
//   shear_x, shear_y           by 0.03 m, either way
//   translate_x, translate_y   by 0.045 m of the side, either way
// Each drawn operation is applied with probability 1/2. Geometric operations interpolate bicubically, as in DeiT, and
// give uncovered pixels the value `fill`.
const std::vector<std::string>& rand_augment_names();

// The first function applies one operation at the given magnitude, clipped to [0, 10]; `stream` decides its direction.
// Throws Error if `name` is not an operation. The second applies operations drawn from `stream`.
Pixels apply(const std::string& name, double magnitude, Pixels image, const std::vector<std::uint8_t>& fill,
             RandomStream& stream);
Pixels apply(const RandAugment& augment, Pixels image, const std::vector<std::uint8_t>& fill, RandomStream& stream);

}  // namespace plumb::lab
