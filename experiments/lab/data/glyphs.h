// The data set glyphs: ten classes of 3 x 32 x 32 images. The library generates the images, so the data set needs no
// files. A linear model classifies about four images in ten correctly.
//
// An image shows a figure on a ground. The figure and the ground have one oriented texture each; clutter, colour, a
// shading ramp and noise are added. Two of the five orientations (0, 36, ... 144 degrees) occur in an image, and the
// pair of orientations is the class, so there are C(5, 2) = 10 classes. One texture does not determine the class, so a
// model must combine evidence from the whole image. The phases of the textures are uniform, so a single pixel carries
// no information about the orientations. In addition, the colours of both textures are shifted towards a hue of the
// class. The shift is smaller than the variation of colours within a class. A linear model can use the shift, and
// training learns the shift first.
//
// All arithmetic after the random draws uses integers, so the bytes are the same on every machine and with every
// compiler. A mirrored image belongs to another class, so train without horizontal flips.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// The split of the images: images of different splits come from different random draws.
enum class GlyphSplit : std::uint32_t { train = 0, validation = 1 };

// Generates the images 0 ... count - 1 of a split. Image i does not depend on `count` and has the label i % 10. Throws
// Error unless 0 <= count < 2^32.
ImageSet make_glyphs(GlyphSplit split, std::int64_t count);

// The data set with the given numbers of training and validation images.
ImageData glyphs(std::int64_t train = 12800, std::int64_t validation = 2000);

}  // namespace plumb::lab
