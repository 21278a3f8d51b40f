// Operations on one image of bytes, as in Pillow, which timm's augmentations use. The results have the same bytes as
// Pillow's, except for single values on a rounding boundary, for grey and for colour images.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace plumb::lab {

// An image of bytes.
struct Pixels {
  std::int64_t channels = 0, height = 0, width = 0;  // 1 channel: grey; 3: red, green, blue
  std::vector<std::uint8_t> bytes = {};              // [channels, height, width]

  // The bytes [height, width] of a channel.
  std::uint8_t* plane(std::int64_t channel) { return bytes.data() + channel * height * width; }
  const std::uint8_t* plane(std::int64_t channel) const { return bytes.data() + channel * height * width; }
};

// Each of these operations changes an image in place, every channel separately.
void auto_contrast(Pixels& image);            // stretches values so that the darkest becomes 0 and the lightest 255
void equalize(Pixels& image);                 // makes all values about equally frequent
void invert(Pixels& image);                   // replaces each value v by 255 - v
void posterize(Pixels& image, int bits);      // keeps the highest `bits` bits; throws Error unless bits is in 0..8
void solarize(Pixels& image, int threshold);  // inverts values of at least `threshold`
void solarize_add(Pixels& image, int add);    // adds `add` to values below 128, up to 255
// Blend the image with another version of it: one without colour, one without contrast, a black image, and a smoothed
// image, in this order. A factor of 0 gives the other version, 1 leaves the image unchanged, and above 1 the image
// moves away from the other version. The factor must be at least 0.
void adjust_colour(Pixels& image, double factor);
void adjust_contrast(Pixels& image, double factor);
void adjust_brightness(Pixels& image, double factor);
void adjust_sharpness(Pixels& image, double factor);

// How pixels between the pixels of an image are computed.
enum class Interpolation { bilinear, bicubic };

// Applies an affine map. With matrix = {a, b, c, d, e, f}, pixel (x, y) of the result is the image at
// (a x + b y + c, d x + e y + f), in coordinates in which the centre of the first pixel is (0.5, 0.5). Pixels outside
// the image have the value `fill`, one byte for each channel. Throws Error if `fill` has another number of channels.
Pixels affine(const Pixels& image, const std::array<double, 6>& matrix, Interpolation interpolation,
              const std::vector<std::uint8_t>& fill);
// Rotates counter-clockwise about the centre of the image. `fill` as in affine().
Pixels rotate(const Pixels& image, double degrees, Interpolation interpolation, const std::vector<std::uint8_t>& fill);

// The rectangle of rows [top, top + height) and columns [left, left + width).
struct Box {
  std::int64_t top, left, height, width;
};
// Resizes a part of the image to height x width. When it shrinks, the filter is as wide as the area that a pixel of the
// result covers. Throws Error if the part is not inside the image or a size is 0.
Pixels resize(const Pixels& image, const Box& part, std::int64_t height, std::int64_t width,
              Interpolation interpolation);

}  // namespace plumb::lab
