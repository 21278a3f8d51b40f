// The embedded set: ten classes of 3x32x32 images that need no file, and of which a linear model can tell four in ten.
//
// An image shows two oriented textures (a figure on a ground), under clutter, colour, a shading ramp and noise. Of five
// orientations (0, 36, ... 144 degrees) two are present; the class is which two: C(5, 2) = 10. Neither texture alone
// tells the class, so evidence has to be gathered over the image, and phases are uniform, so no pixel tells of
// orientations by itself. Beside them the colour of both textures leans towards a hue of the class, by less than
// colours vary within a class: that a linear model can use, and what is being trained begins with it.
//
// All arithmetic after the draws is in integers: the bytes are the same on every machine and compiler. A mirrored image
// belongs to another class: train without horizontal flips.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

enum class GlyphSplit : std::uint32_t { train = 0, validation = 1 };

// Images 0 ... count - 1 of a split; image i is the same whatever `count` is, and has label i % 10.
ImageSet make_glyphs(GlyphSplit split, std::int64_t count);

ImageData glyphs(std::int64_t train = 12800, std::int64_t validation = 2000);

}  // namespace plumb::lab
