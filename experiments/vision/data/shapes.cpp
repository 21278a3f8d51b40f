#include "experiments/vision/data/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "experiments/lab/data/random_stream.h"

namespace plumb::vision {
namespace {

constexpr int shapes_side = 64, shapes_channels = 3;
constexpr std::int64_t most_shapes = 4;
constexpr int smallest = 10, largest = 28;  // width and height of a shape, in pixels
enum ShapeKind { circle, square, triangle };
constexpr std::array<const char*, 3> kind_names{"circle", "square", "triangle"};

using Colour = std::array<int, shapes_channels>;

// Sine in integers: a full turn has 256 steps and the amplitude is 127.
int sine_127(int angle) {
  static const std::array<int, 256> table = [] {
    std::array<int, 256> t{};
    for (std::size_t i = 0; i < t.size(); ++i)
      t[i] = static_cast<int>(std::lround(127.0 * std::sin(2.0 * std::numbers::pi * static_cast<double>(i) / 256.0)));
    return t;
  }();
  return table[static_cast<std::size_t>(angle & 255)];
}

int between(RandomStream& random, int low, int high) { return low + static_cast<int>(random.below(high - low + 1)); }

// A shape in the square of `size` pixels at (x, y).
struct Shape {
  ShapeKind kind;
  int x, y, size;
  Colour colour;

  // Whether the centre of pixel (px, py) is in the shape. The coordinates are in half pixels, so that centres are
  // whole.
  bool covers(int px, int py) const {
    const int u = 2 * (px - x) + 1, v = 2 * (py - y) + 1, s = 2 * size;  // in 0 .. s
    if (u < 0 || v < 0 || u > s || v > s) return false;
    if (kind == circle) return (u - size) * (u - size) + (v - size) * (v - size) <= size * size;
    if (kind == triangle) return 2 * std::abs(u - size) <= v;  // the tip is at the middle of the upper side
    return true;
  }
};

// The share of the smaller box that two boxes have in common, in percent.
int overlap(const Shape& a, const Shape& b) {
  const int w = std::min(a.x + a.size, b.x + b.size) - std::max(a.x, b.x),
            h = std::min(a.y + a.size, b.y + b.size) - std::max(a.y, b.y), least = std::min(a.size, b.size);
  return w <= 0 || h <= 0 ? 0 : 100 * w * h / (least * least);
}

// The smallest box around the pixels of a shape, and their number.
struct Extent {
  CocoBox box;
  double area;
};
Extent extent_of(const Shape& shape) {
  int x0 = shapes_side, y0 = shapes_side, x1 = -1, y1 = -1, count = 0;
  for (int y = shape.y; y < shape.y + shape.size; ++y)
    for (int x = shape.x; x < shape.x + shape.size; ++x)
      if (shape.covers(x, y)) {
        x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
        ++count;
      }
  const auto number = [](int n) { return static_cast<double>(n); };
  return {{number(x0), number(y0), number(x1 + 1 - x0), number(y1 + 1 - y0)}, number(count)};
}

// Draws the shapes of an image. A shape that would cover more than a fifth of the box of another shape is drawn again;
// after ten attempts for each shape, the rest is left out.
std::vector<Shape> draw_shapes(RandomStream& random, const Colour& ground) {
  std::vector<Shape> shapes;
  const std::int64_t wanted = 1 + random.below(most_shapes);
  for (int attempt = 0; std::ssize(shapes) < wanted && attempt < 10 * wanted; ++attempt) {
    Shape s{.kind = static_cast<ShapeKind>(random.below(3)),
            .x = 0,
            .y = 0,
            .size = between(random, smallest, largest),
            .colour = {}};
    s.x = between(random, 0, shapes_side - s.size), s.y = between(random, 0, shapes_side - s.size);
    int difference = 0;
    for (std::size_t c = 0; c < shapes_channels; ++c) {
      s.colour[c] = between(random, 20, 235);
      difference += std::abs(s.colour[c] - ground[c]);
    }
    if (difference < 120) continue;
    if (std::ranges::all_of(shapes, [&](const Shape& other) { return overlap(s, other) <= 20; })) shapes.push_back(s);
  }
  return shapes;
}

}  // namespace

DetectionSet make_shapes(ShapeSplit split, std::int64_t count) {
  check(0 <= count && count < (std::int64_t{1} << 31), "[shapes] expected 0 .. 2^31 - 1 images, got {}", count);
  DetectionSet set;
  for (std::size_t k = 0; k < kind_names.size(); ++k)
    set.truth.categories.push_back({static_cast<std::int64_t>(k) + 1, kind_names[k]});
  for (std::int64_t i = 0; i < count; ++i) {
    RandomStream random(0, "data.shapes", static_cast<std::uint32_t>(split), i);
    Colour ground{};
    for (int& level : ground) level = between(random, 60, 195);
    const int angle = between(random, 0, 255), wave = between(random, 5, 16), phase = between(random, 0, 255),
              contrast = between(random, 10, 60), noise = between(random, 4, 24);
    // The step of the phase for a pixel to the right and downwards, in 1/256 of a turn, times 127.
    const int across = 256 * sine_127(angle + 64) / wave, down = 256 * sine_127(angle) / wave;
    const std::vector<Shape> shapes = draw_shapes(random, ground);
    Pixels image{shapes_channels, shapes_side, shapes_side, {}};
    image.bytes.resize(shapes_channels * shapes_side * shapes_side);
    for (int y = 0; y < shapes_side; ++y)
      for (int x = 0; x < shapes_side; ++x) {
        const auto top = std::find_if(shapes.rbegin(), shapes.rend(), [&](const Shape& s) { return s.covers(x, y); });
        const int ripple = contrast * sine_127(phase + (across * x + down * y) / 127) / 127;
        const int grain = between(random, -noise, noise);
        for (std::size_t c = 0; c < shapes_channels; ++c) {
          const int level = top != shapes.rend() ? top->colour[c] + grain / 2 : ground[c] + ripple + grain;
          image.bytes[c * shapes_side * shapes_side + static_cast<std::size_t>(y * shapes_side + x)] =
              static_cast<std::uint8_t>(std::clamp(level, 0, 255));
        }
      }
    const std::int64_t id = i + 1;
    set.truth.images.push_back({id, fmt::format("{:06}.png", i), shapes_side, shapes_side});
    for (const Shape& s : shapes) {
      const Extent extent = extent_of(s);
      set.truth.annotations.push_back({.id = std::ssize(set.truth.annotations) + 1,
                                       .image = id,
                                       .category = static_cast<std::int64_t>(s.kind) + 1,
                                       .box = extent.box,
                                       .area = extent.area});
    }
    set.pixels.push_back(std::move(image));
  }
  return set;
}

DetectionData shapes(std::int64_t train, std::int64_t validation) {
  return {.name = "shapes",
          .train = make_shapes(ShapeSplit::train, train),
          .validation = make_shapes(ShapeSplit::validation, validation),
          .validation_is = "the generated test set (drawn separately from the training images by the same procedure)"};
}

}  // namespace plumb::vision
