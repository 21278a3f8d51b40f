#include "experiments/vision/data/rand_augment.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace plumb::vision {
namespace {

using Fill = std::vector<std::uint8_t>;

double either_way(double v, RandomStream& stream) { return stream.happens(0.5) ? -v : v; }

// Applies one operation at the magnitude m in [0, 10].
using Operation = Pixels (*)(Pixels image, double m, const Fill& fill, RandomStream& stream);

template <void (*f)(Pixels&)>
Pixels plain(Pixels image, double, const Fill&, RandomStream&) {
  f(image);
  return image;
}

template <void (*f)(Pixels&, double)>
Pixels enhanced(Pixels image, double m, const Fill&, RandomStream& stream) {
  f(image, std::max(0.1, 1 + either_way(0.09 * m, stream)));
  return image;
}

Pixels moved(const Pixels& image, const std::array<double, 6>& matrix, const Fill& fill) {
  return affine(image, matrix, Interpolation::bicubic, fill);  // bicubic, as in DeiT
}

const std::vector<std::pair<std::string, Operation>>& operations() {
  static const std::vector<std::pair<std::string, Operation>> all{
      {"auto_contrast", plain<auto_contrast>},
      {"equalize", plain<equalize>},
      {"invert", plain<invert>},
      {"rotate",
       [](Pixels image, double m, const Fill& fill, RandomStream& stream) {
         const double degrees = either_way(3 * m, stream);
         return rotate(image, degrees, Interpolation::bicubic, fill);
       }},
      {"posterize", [](Pixels image, double m, const Fill&,
                       RandomStream&) { return posterize(image, 4 - static_cast<int>(m / 10 * 4)), image; }},
      {"solarize", [](Pixels image, double m, const Fill&,
                      RandomStream&) { return solarize(image, 256 - static_cast<int>(m / 10 * 256)), image; }},
      {"solarize_add", [](Pixels image, double m, const Fill&,
                          RandomStream&) { return solarize_add(image, static_cast<int>(m / 10 * 110)), image; }},
      {"colour", enhanced<adjust_colour>},
      {"contrast", enhanced<adjust_contrast>},
      {"brightness", enhanced<adjust_brightness>},
      {"sharpness", enhanced<adjust_sharpness>},
      {"shear_x",
       [](Pixels image, double m, const Fill& fill, RandomStream& stream) {
         const double by = either_way(m / 10 * 0.3, stream);
         return moved(image, {1, by, 0, 0, 1, 0}, fill);
       }},
      {"shear_y",
       [](Pixels image, double m, const Fill& fill, RandomStream& stream) {
         const double by = either_way(m / 10 * 0.3, stream);
         return moved(image, {1, 0, 0, by, 1, 0}, fill);
       }},
      {"translate_x",
       [](Pixels image, double m, const Fill& fill, RandomStream& stream) {
         const double by = either_way(m / 10 * 0.45, stream) * static_cast<double>(image.width);
         return moved(image, {1, 0, by, 0, 1, 0}, fill);
       }},
      {"translate_y",
       [](Pixels image, double m, const Fill& fill, RandomStream& stream) {
         const double by = either_way(m / 10 * 0.45, stream) * static_cast<double>(image.height);
         return moved(image, {1, 0, 0, 0, 1, by}, fill);
       }},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& rand_augment_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, operation] : operations()) list.push_back(name);
    return list;
  }();
  return names;
}

Pixels apply(const std::string& name, double magnitude, Pixels image, const Fill& fill, RandomStream& stream) {
  const auto found = std::ranges::find(operations(), name, &std::pair<std::string, Operation>::first);
  check(found != operations().end(), "[rand_augment] expected one of {}, got {}", fmt::join(rand_augment_names(), ", "),
        name);
  return found->second(std::move(image), std::clamp(magnitude, 0.0, 10.0), fill, stream);
}

Pixels apply(const RandAugment& augment, Pixels image, const Fill& fill, RandomStream& stream) {
  for (std::int64_t i = 0; i < augment.operations; ++i) {
    const auto& [name, operation] =
        operations()[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(operations().size())))];
    if (!stream.happens(0.5)) continue;
    image = operation(std::move(image), std::clamp(augment.magnitude + augment.deviation * stream.normal(), 0.0, 10.0),
                      fill, stream);
  }
  return image;
}

}  // namespace plumb::vision
