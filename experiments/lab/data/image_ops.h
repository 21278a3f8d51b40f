// Operations on one image of bytes, as the Python Imaging Library defines them (timm's augmentations are made of its):
// the same bytes as its own (but for single values that lie on a rounding), for grey and colour images alike.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace plumb::lab {

struct Pixels {
  std::int64_t channels = 0, height = 0, width = 0;  // 1 channel: grey; 3: red, green, blue
  std::vector<std::uint8_t> bytes = {};              // [channels, height, width]

  std::uint8_t* plane(std::int64_t channel) { return bytes.data() + channel * height * width; }
  const std::uint8_t* plane(std::int64_t channel) const { return bytes.data() + channel * height * width; }
};

// Channel by channel: stretched so that the darkest becomes 0 and the lightest 255; so that all values are equally
// frequent; turned over.
void auto_contrast(Pixels& image);
void equalize(Pixels& image);
void invert(Pixels& image);
void posterize(Pixels& image, int bits);      // keeps the highest `bits`, 0 .. 8
void solarize(Pixels& image, int threshold);  // turns over what is at least that
void solarize_add(Pixels& image, int add);    // adds to what is below 128
// Towards (factor 0) or away from (above 1) what the image would be without colour, without contrast, black, and
// smoothed; 1 leaves it. From 0 on.
void adjust_colour(Pixels& image, double factor);
void adjust_contrast(Pixels& image, double factor);
void adjust_brightness(Pixels& image, double factor);
void adjust_sharpness(Pixels& image, double factor);

enum class Interpolation { bilinear, bicubic };

// Pixel (x, y) of the result is that of the image at (a x + b y + c, d x + e y + f), in coordinates where the first
// pixel's centre is (0.5, 0.5); `fill` where that is outside. matrix: a .. f.
Pixels affine(const Pixels& image, const std::array<double, 6>& matrix, Interpolation interpolation,
              const std::vector<std::uint8_t>& fill);
// Counter-clockwise about the centre.
Pixels rotate(const Pixels& image, double degrees, Interpolation interpolation, const std::vector<std::uint8_t>& fill);

// The part [top, top + height) x [left, left + width) of the image, at another size: with a filter as wide as what a
// pixel of the result covers.
struct Box {
  std::int64_t top, left, height, width;
};
Pixels resize(const Pixels& image, const Box& part, std::int64_t height, std::int64_t width,
              Interpolation interpolation);

}  // namespace plumb::lab
