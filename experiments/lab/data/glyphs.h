// The data set glyphs: ten classes of 3x32x32 images that the library generates, so that it needs no files. A linear
// model classifies about four images in ten correctly.
//
// An image shows two oriented textures, a figure on a ground, with clutter, colour, a shading ramp and noise. Two of
// five orientations (0, 36, ... 144 degrees) are present; the pair is the class, C(5, 2) = 10. One texture does not
// determine the class, so a model must combine evidence from the whole image. Phases are uniform, so a single pixel
// carries no information about orientations. In addition, the colours of both textures are shifted towards a hue of the
// class, by less than colours vary within a class. A linear model can use this shift, and training learns it first.
//
// All arithmetic after the random draws uses integers, so the bytes are the same on every machine and with every
// compiler. A mirrored image belongs to another class, so train without horizontal flips.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// Images of different splits use different random draws.
enum class GlyphSplit : std::uint32_t { train = 0, validation = 1 };

// Generates the images 0 ... count - 1 of a split. Image i does not depend on `count` and has the label i % 10. Throws
// Error unless 0 <= count < 2^32.
ImageSet make_glyphs(GlyphSplit split, std::int64_t count);

// The data set with these numbers of training and validation images.
ImageData glyphs(std::int64_t train = 12800, std::int64_t validation = 2000);

}  // namespace plumb::lab
