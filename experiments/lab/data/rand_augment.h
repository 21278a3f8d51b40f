// RandAugment (Cubuk et al. 2020) as timm has it under "rand-m9-mstd0.5-inc1", which DeiT and CaiT train with.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/data/random_stream.h"

namespace plumb::lab {

struct RandAugment {
  std::int64_t operations = 0;            // drawn from the list below, the same more than once if it comes so; 0: none
  double magnitude = 9, deviation = 0.5;  // of a normal draw for each operation, cut to [0, 10]
};

// The operations of the list that grows stronger with the magnitude m:
//   auto_contrast, equalize, invert
//   rotate         by 3 m degrees, either way
//   posterize      to 4 - floor(0.4 m) bits
//   solarize       from 256 - floor(25.6 m) on
//   solarize_add   floor(11 m)
//   colour, contrast, brightness, sharpness   by max(0.1, 1 +- 0.09 m)
//   shear_x, shear_y           by 0.03 m, either way
//   translate_x, translate_y   by 0.045 m of the side, either way
// Each happens with probability 1/2. Geometric ones interpolate bicubically, as in DeiT, and fill with `fill`.
const std::vector<std::string>& rand_augment_names();

// One of them at that magnitude; `stream` says which way.
Pixels apply(const std::string& name, double magnitude, Pixels image, const std::vector<std::uint8_t>& fill,
             RandomStream& stream);
Pixels apply(const RandAugment& augment, Pixels image, const std::vector<std::uint8_t>& fill, RandomStream& stream);

}  // namespace plumb::lab
