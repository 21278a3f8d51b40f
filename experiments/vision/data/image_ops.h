// Operations on one image of bytes, as in Pillow. The augmentations of timm call these operations of Pillow. For grey
// and colour images, the results are the same bytes as in Pillow, except for single values on a rounding boundary.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "experiments/vision/data/lab.h"

namespace plumb::vision {

// An image of bytes.
struct Pixels {
  std::int64_t channels = 0, height = 0, width = 0;  // channels: 1 for grey, or 3 for red, green, blue
  std::vector<std::uint8_t> bytes = {};              // [channels, height, width]

  // The bytes [height, width] of a channel.
  std::uint8_t* plane(std::int64_t channel) { return bytes.data() + channel * height * width; }
  const std::uint8_t* plane(std::int64_t channel) const { return bytes.data() + channel * height * width; }
};

// Each of these functions changes an image in place, every channel separately.
void auto_contrast(Pixels& image);            // stretches the values so that the darkest becomes 0, the lightest 255
void equalize(Pixels& image);                 // makes all values about equally frequent
void invert(Pixels& image);                   // replaces each value v by 255 - v
void posterize(Pixels& image, int bits);      // keeps the highest `bits` bits; throws Error unless bits is in 0..8
void solarize(Pixels& image, int threshold);  // replaces each value v >= threshold by 255 - v
void solarize_add(Pixels& image, int add);    // adds `add` to each value below 128; the sum is limited to 255
// Each of these functions blends the image with a second version of the image. In the order of the functions, the
// second version is the grey image, a uniform grey image, a black image, and a smoothed image. The factor 0 gives the
// second version, the factor 1 leaves the image unchanged, and a factor above 1 increases the difference from the
// second version. The factor must be at least 0.
void adjust_colour(Pixels& image, double factor);
void adjust_contrast(Pixels& image, double factor);
void adjust_brightness(Pixels& image, double factor);
void adjust_sharpness(Pixels& image, double factor);

// The method that computes values between the centres of pixels.
enum class Interpolation { bilinear, bicubic };

// Applies an affine map. If matrix = {a, b, c, d, e, f}, then (a x + b y + c, d x + e y + f) is the point of the image
// that becomes pixel (x, y) of the result. In these coordinates, the centre of the first pixel is (0.5, 0.5). Pixels
// outside the image get the value `fill`, which has one byte for each channel. Throws Error if `fill` has another
// number of bytes.
Pixels affine(const Pixels& image, const std::array<double, 6>& matrix, Interpolation interpolation,
              const std::vector<std::uint8_t>& fill);
// Rotates the image counter-clockwise about its centre. Pixels outside the image get the value `fill`, as in affine().
Pixels rotate(const Pixels& image, double degrees, Interpolation interpolation, const std::vector<std::uint8_t>& fill);

// The rectangle of rows [top, top + height) and columns [left, left + width).
struct PixelBox {
  std::int64_t top, left, height, width;
};
// Resizes the rectangle `part` of the image to height x width. If the result is smaller than the part, the filter is as
// wide as the area that one pixel of the result covers. Throws Error if the part is not inside the image or if a size
// is 0.
Pixels resize(const Pixels& image, const PixelBox& part, std::int64_t height, std::int64_t width,
              Interpolation interpolation);

}  // namespace plumb::vision
