#include "experiments/vision/data/image_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/error.h"

namespace plumb::vision {
namespace {

using Table = std::array<std::uint8_t, 256>;

std::uint8_t clip(double v) { return v <= 0 ? 0 : v >= 255 ? 255 : static_cast<std::uint8_t>(v); }  // rounds towards 0

void map(std::uint8_t* plane, std::int64_t size, const Table& table) {
  for (std::int64_t i = 0; i < size; ++i) plane[i] = table[plane[i]];
}

void map(Pixels& image, const std::function<int(int)>& f) {
  Table table;
  for (int v = 0; v < 256; ++v)
    table[static_cast<std::size_t>(v)] = static_cast<std::uint8_t>(std::clamp(f(v), 0, 255));
  map(image.bytes.data(), static_cast<std::int64_t>(image.bytes.size()), table);
}

std::array<std::int64_t, 256> histogram(const std::uint8_t* plane, std::int64_t size) {
  std::array<std::int64_t, 256> counts{};
  for (std::int64_t i = 0; i < size; ++i) ++counts[plane[i]];
  return counts;
}

// The grey version of an image: its luma by Rec. 601, in 16-bit fixed point.
std::vector<std::uint8_t> grey(const Pixels& image) {
  const std::int64_t size = image.height * image.width;
  if (image.channels == 1) return image.bytes;
  std::vector<std::uint8_t> luma(static_cast<std::size_t>(size));
  const std::uint8_t *r = image.plane(0), *g = image.plane(1), *b = image.plane(2);
  for (std::int64_t i = 0; i < size; ++i)
    luma[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>((r[i] * 19595u + g[i] * 38470u + b[i] * 7471u + 0x8000u) >> 16);
  return luma;
}

// The value from + factor (to - from), computed in single precision.
std::uint8_t blend(std::uint8_t from, std::uint8_t to, double factor) {
  return clip(static_cast<float>(from) +
              static_cast<float>(factor) * static_cast<float>(static_cast<int>(to) - static_cast<int>(from)));
}

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double triangle_filter(double x) { return std::max(0.0, 1 - std::abs(x)); }

// The input elements and weights of one output element of resize_line().
struct Weights {
  std::int64_t first;   // index of the first input element
  std::vector<int> of;  // the weights of the input elements from `first` on, in 22-bit fixed point
};

constexpr int precision = 22;

std::vector<Weights> weights_of(std::int64_t from, std::int64_t to, Interpolation interpolation) {
  const bool bicubic = interpolation == Interpolation::bicubic;
  const double scale = static_cast<double>(from) / static_cast<double>(to), width = std::max(scale, 1.0),
               support = (bicubic ? 2 : 1) * width;
  std::vector<Weights> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto last = std::min(static_cast<std::int64_t>(centre + support + 0.5), from);
    std::vector<double> w;
    double sum = 0;
    for (std::int64_t x = first; x < last; ++x) {
      const double at = (static_cast<double>(x) - centre + 0.5) / width;
      sum += w.emplace_back(bicubic ? cubic(at) : triangle_filter(at));
    }
    Weights& weights = all.emplace_back(Weights{first, {}});
    for (const double v : w) {
      const double fixed = sum == 0 ? 0 : v / sum * (1 << precision);
      weights.of.push_back(static_cast<int>(fixed < 0 ? fixed - 0.5 : fixed + 0.5));
    }
  }
  return all;
}

// Resizes one line. The elements of the input and output lines are from_step and to_step bytes apart.
void resize_line(const std::uint8_t* from, std::int64_t from_step, std::uint8_t* to, std::int64_t to_step,
                 const std::vector<Weights>& weights) {
  for (const Weights& w : weights) {
    int sum = 1 << (precision - 1);
    for (std::size_t k = 0; k < w.of.size(); ++k)
      sum += w.of[k] * from[(w.first + static_cast<std::int64_t>(k)) * from_step];
    *to = static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
    to += to_step;
  }
}

double linear(double a, double b, double t) { return a + (b - a) * t; }
double cubic(double a, double b, double c, double d, double t) {
  return b + t * (-a + c + t * (2 * (a - b) + c - d + t * (-a + b - c + d)));
}

// The interpolated value at (x, y). In these coordinates, the centre of the first pixel is (0, 0). A column outside the
// plane is replaced by the nearest column, and a row below the plane is replaced by the row before it.
double between(const std::uint8_t* plane, std::int64_t height, std::int64_t width, double x, double y,
               Interpolation interpolation) {
  const double left = std::floor(x), top = std::floor(y);
  const auto column = [&](std::int64_t c) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(left) + c, 0, width - 1);
  };
  const auto first = static_cast<std::int64_t>(top);
  if (interpolation == Interpolation::bilinear) {
    const auto row = [&](std::int64_t r) {
      const std::uint8_t* at = plane + r * width;
      return linear(at[column(0)], at[column(1)], x - left);
    };
    const double upper = row(std::clamp<std::int64_t>(first, 0, height - 1));
    return linear(upper, first + 1 < height ? row(first + 1) : upper, y - top);
  }
  const auto row = [&](std::int64_t r) {
    const std::uint8_t* at = plane + r * width;
    return cubic(at[column(-1)], at[column(0)], at[column(1)], at[column(2)], x - left);
  };
  double v[4] = {row(std::clamp<std::int64_t>(first - 1, 0, height - 1))};
  for (std::int64_t i = 1; i < 4; ++i)
    v[i] = first - 1 + i >= 0 && first - 1 + i < height ? row(first - 1 + i) : v[i - 1];
  return cubic(v[0], v[1], v[2], v[3], y - top);
}

}  // namespace

void auto_contrast(Pixels& image) {
  const std::int64_t size = image.height * image.width;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto [low, high] = std::minmax_element(image.plane(c), image.plane(c) + size);
    if (*high <= *low) continue;
    const double scale = 255.0 / (*high - *low), offset = -*low * scale;
    Table table;
    for (int v = 0; v < 256; ++v) table[static_cast<std::size_t>(v)] = clip(v * scale + offset);
    map(image.plane(c), size, table);
  }
}

void equalize(Pixels& image) {
  const std::int64_t size = image.height * image.width;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto counts = histogram(image.plane(c), size);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t n) { return n > 0; });
    const std::int64_t step = last == counts.rend() ? 0 : (size - *last) / 255;
    if (step == 0) continue;
    Table table;
    std::int64_t sum = step / 2;
    for (std::size_t v = 0; v < 256; ++v) {
      table[v] = static_cast<std::uint8_t>(std::min<std::int64_t>(sum / step, 255));
      sum += counts[v];
    }
    map(image.plane(c), size, table);
  }
}

void invert(Pixels& image) {
  map(image, [](int v) { return 255 - v; });
}

void posterize(Pixels& image, int bits) {
  check(0 <= bits && bits <= 8, "[posterize] expected 0 to 8 bits, got {}", bits);
  map(image, [mask = ~((1 << (8 - bits)) - 1)](int v) { return v & mask; });
}

void solarize(Pixels& image, int threshold) {
  map(image, [threshold](int v) { return v < threshold ? v : 255 - v; });
}

void solarize_add(Pixels& image, int add) {
  map(image, [add](int v) { return v < 128 ? std::min(255, v + add) : v; });
}

void adjust_colour(Pixels& image, double factor) {
  const std::vector<std::uint8_t> luma = grey(image);
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::size_t i = 0; i < luma.size(); ++i) image.plane(c)[i] = blend(luma[i], image.plane(c)[i], factor);
}

void adjust_contrast(Pixels& image, double factor) {
  const std::vector<std::uint8_t> luma = grey(image);
  double sum = 0;
  for (const std::uint8_t v : luma) sum += v;
  const auto mean = static_cast<std::uint8_t>(sum / static_cast<double>(luma.size()) + 0.5);
  for (std::uint8_t& v : image.bytes) v = blend(mean, v, factor);
}

void adjust_brightness(Pixels& image, double factor) {
  for (std::uint8_t& v : image.bytes) v = blend(0, v, factor);
}

// The smoothing filter is [1 1 1; 1 5 1; 1 1 1] / 13. Pixels on the border are not smoothed.
void adjust_sharpness(Pixels& image, double factor) {
  const Pixels sharp = image;
  const std::int64_t H = image.height, W = image.width;
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t y = 1; y + 1 < H; ++y)
      for (std::int64_t x = 1; x + 1 < W; ++x) {
        const std::uint8_t* at = sharp.plane(c) + y * W + x;
        float sum = 0;
        for (std::int64_t dy = -1; dy <= 1; ++dy)
          for (std::int64_t dx = -1; dx <= 1; ++dx)
            sum += static_cast<float>(at[dy * W + dx]) * (dy == 0 && dx == 0 ? 5.0f : 1.0f) / 13.0f;
        image.plane(c)[y * W + x] = blend(clip(sum + 0.5f), *at, factor);
      }
}

Pixels affine(const Pixels& image, const std::array<double, 6>& m, Interpolation interpolation,
              const std::vector<std::uint8_t>& fill) {
  check(static_cast<std::int64_t>(fill.size()) == image.channels, "[affine] expected a fill of {} channels, got {}",
        image.channels, fill.size());
  Pixels result = image;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      const double px = static_cast<double>(x) + 0.5, py = static_cast<double>(y) + 0.5;
      const double from_x = m[0] * px + m[1] * py + m[2], from_y = m[3] * px + m[4] * py + m[5];
      const bool inside = from_x >= 0 && from_x < static_cast<double>(image.width) && from_y >= 0 &&
                          from_y < static_cast<double>(image.height);
      for (std::int64_t c = 0; c < image.channels; ++c)
        result.plane(c)[y * image.width + x] =
            inside ? clip(between(image.plane(c), image.height, image.width, from_x - 0.5, from_y - 0.5, interpolation))
                   : fill[static_cast<std::size_t>(c)];
    }
  return result;
}

Pixels rotate(const Pixels& image, double degrees, Interpolation interpolation, const std::vector<std::uint8_t>& fill) {
  const double angle = -degrees * std::numbers::pi / 180;
  const auto rounded = [](double v) { return std::round(v * 1e15) / 1e15; };
  const double cosine = rounded(std::cos(angle)), sine = rounded(std::sin(angle));
  const double cx = static_cast<double>(image.width) / 2, cy = static_cast<double>(image.height) / 2;
  return affine(image, {cosine, sine, -cosine * cx - sine * cy + cx, -sine, cosine, sine * cx - cosine * cy + cy},
                interpolation, fill);
}

Pixels resize(const Pixels& image, const PixelBox& part, std::int64_t height, std::int64_t width,
              Interpolation interpolation) {
  check(part.top >= 0 && part.left >= 0 && part.height > 0 && part.width > 0 &&
            part.top + part.height <= image.height && part.left + part.width <= image.width && height > 0 && width > 0,
        "[resize] expected a part of an image of {} x {} and a size above 0, got {} x {} at ({}, {}) to {} x {}",
        image.height, image.width, part.height, part.width, part.top, part.left, height, width);
  Pixels result{image.channels, height, width,
                std::vector<std::uint8_t>(static_cast<std::size_t>(image.channels * height * width))};
  const auto across = weights_of(part.width, width, interpolation),
             down = weights_of(part.height, height, interpolation);
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(part.height * width));
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 0; y < part.height; ++y) {
      const std::uint8_t* from = image.plane(c) + (part.top + y) * image.width + part.left;
      if (width == part.width)
        std::copy_n(from, width, rows.data() + y * width);
      else
        resize_line(from, 1, rows.data() + y * width, 1, across);
    }
    for (std::int64_t x = 0; x < width; ++x) {
      if (height == part.height)
        for (std::int64_t y = 0; y < height; ++y)
          result.plane(c)[y * width + x] = rows[static_cast<std::size_t>(y * width + x)];
      else
        resize_line(rows.data() + x, width, result.plane(c) + x, width, down);
    }
  }
  return result;
}

}  // namespace plumb::vision
