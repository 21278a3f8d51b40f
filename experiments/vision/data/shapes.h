// The data set shapes: 64 x 64 colour images with one to four circles, squares and triangles on a textured ground, and
// the boxes around them. The library generates the images, so the data set needs no files.
//
// The ground is a pattern of oriented waves with noise. A shape has one colour with noise, which differs from the mean
// colour of the ground, and is 10 to 28 pixels wide. Later shapes cover earlier ones, but the boxes of two shapes share
// little. A box is the smallest rectangle around the whole shape. All arithmetic uses integers, so the bytes are the
// same on every machine.
#pragma once

#include "experiments/vision/data/detection_set.h"

namespace plumb::vision {

// The split of the images: images of different splits come from different random draws.
enum class ShapeSplit : std::uint32_t { train = 0, validation = 1 };

// Generates the images 0 .. count - 1 of a split. Image i does not depend on `count`. Throws Error unless
// 0 <= count < 2^31.
DetectionSet make_shapes(ShapeSplit split, std::int64_t count);

// The data set with these numbers of images.
DetectionData shapes(std::int64_t train = 4000, std::int64_t validation = 500);

}  // namespace plumb::vision
