// The data sets glyphs, glyphs-clutter and glyphs-few: classes of 3 x 32 x 32 images. The library generates the images,
// so the data sets need no files.
//
// | data set       | classes | training images | validation images | images                                      |
// | glyphs         | 10      | 12,800          | 2,000             | plain: networks learn all classes           |
// | glyphs-clutter | 28      | 25,200          | 2,800             | cluttered: not learned in hundreds of steps |
// | glyphs-few     | 28      | 1,008           | 2,800             | the first training images of glyphs-clutter |
//
// An image shows a figure on a ground. The figure and the ground have one oriented texture each; clutter, colour, a
// shading ramp and noise are added. Two orientations occur in an image, and the pair of orientations is the class.
// Plain glyphs have five orientations (0, 36, ... 144 degrees), so there are C(5, 2) = 10 classes. Cluttered glyphs
// have eight orientations (0, 22.5, ... 157.5 degrees), so there are C(8, 2) = 28 classes. One texture does not
// determine the class, so a model must combine evidence from the whole image. The phases of the textures are uniform,
// so a single pixel carries no information about the orientations.
//
// In plain glyphs, the colours of both textures are shifted towards a hue of the class. The shift is smaller than the
// variation of colours within a class. A linear model can use the shift and classifies about four images in ten
// correctly; training learns the shift first. Cluttered glyphs have no such shift, so a linear model stays near chance.
// In cluttered glyphs, the contrast of the textures, the noise, the number of strokes and the size of the figure vary
// from image to image, so some images are easy and others are hard. Networks fit the 1,008 training images of
// glyphs-few completely and classify half of its validation images correctly, so regularisation matters.
//
// All arithmetic after the random draws uses integers, so the bytes are the same on every machine and with every
// compiler. A mirrored image belongs to another class, so train without horizontal flips.
#pragma once

#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// The split of the images: images of different splits come from different random draws.
enum class GlyphSplit : std::uint32_t { train = 0, validation = 1 };

// The two kinds of images: those of the data set glyphs, and those of glyphs-clutter and glyphs-few.
enum class GlyphKind : std::uint32_t { plain = 0, cluttered = 1 };

// Generates the images 0 ... count - 1 of a split. Image i does not depend on `count` and has the label i % classes.
// Throws Error unless 0 <= count < 2^32.
ImageSet make_glyphs(GlyphSplit split, std::int64_t count, GlyphKind kind = GlyphKind::plain);

// The data set glyphs with the given numbers of training and validation images.
ImageData glyphs(std::int64_t train = 12800, std::int64_t validation = 2000);
// The data sets glyphs-clutter and glyphs-few.
ImageData glyphs_clutter();
ImageData glyphs_few();

}  // namespace plumb::vision
