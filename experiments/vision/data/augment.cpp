#include "experiments/vision/data/augment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/random.h"

namespace plumb::vision {
namespace {

// The random stream `what` ("data.crop", ...) of an image. Each copy of the image has its own stream.
RandomStream stream_of(const char* what, const Occurrence& o) {
  return {o.seed, o.copy == 0 ? std::string(what) : fmt::format("{}.{}", what, o.copy), o.epoch, o.sample};
}

void mirror(Pixels& image) {
  for (std::int64_t row = 0; row < image.channels * image.height; ++row)
    std::reverse(image.bytes.begin() + row * image.width, image.bytes.begin() + (row + 1) * image.width);
}

}  // namespace

Placement draw_placement(const Augmentation& augmentation, std::uint64_t seed, std::uint32_t epoch,
                         std::int64_t sample) {
  const Draw draw =
      element_draw(random_key(seed, "data.augment"), epoch, Purpose::augmentation, static_cast<std::uint64_t>(sample));
  const std::int64_t p = augmentation.crop_padding;
  const auto shift = [&](int i) { return static_cast<std::int64_t>(draw16(draw, i)) * (2 * p + 1) / 65536 - p; };
  return {shift(0), shift(1), augmentation.flip && draw16(draw, 2) < 0x8000u};
}

Pixels placed(const Pixels& image, const Placement& placement) {
  const std::int64_t height = image.height, width = image.width;
  Pixels result{image.channels, height, width, std::vector<std::uint8_t>(image.bytes.size(), 0)};
  // The columns of the result that lie inside the image.
  const std::int64_t first = std::clamp<std::int64_t>(-placement.shift_x, 0, width),
                     last = std::clamp(width - placement.shift_x, first, width);
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t from = y + placement.shift_y;
      if (from < 0 || from >= height) continue;
      const std::uint8_t* row = image.plane(c) + from * width;
      std::uint8_t* out = result.plane(c) + y * width;
      for (std::int64_t x = first; x < last; ++x) {
        const std::int64_t column = x + placement.shift_x;
        out[x] = row[placement.flip ? width - 1 - column : column];
      }
    }
  return result;
}

PixelBox draw_crop(std::int64_t height, std::int64_t width, double least_share, RandomStream& stream) {
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = stream.uniform(least_share, 1) * area,
                 ratio = std::exp(stream.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const std::int64_t w = std::lrint(std::sqrt(target * ratio)), h = std::lrint(std::sqrt(target / ratio));
    if (0 < w && w <= width && 0 < h && h <= height)
      return {stream.below(height - h + 1), stream.below(width - w + 1), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width, h = height;
  if (ratio < 3.0 / 4) h = std::lrint(static_cast<double>(w) / (3.0 / 4));
  if (ratio > 4.0 / 3) w = std::lrint(static_cast<double>(h) * (4.0 / 3));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

PixelBox draw_erasure(std::int64_t height, std::int64_t width, double probability, RandomStream& stream) {
  if (!stream.happens(probability)) return {};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = stream.uniform(0.02, 1.0 / 3) * static_cast<double>(height * width);
    const double ratio = std::exp(stream.uniform(std::log(0.3), std::log(1 / 0.3)));
    const std::int64_t h = std::lrint(std::sqrt(target * ratio)), w = std::lrint(std::sqrt(target / ratio));
    if (0 < w && w < width && 0 < h && h < height)
      return {stream.below(height - h + 1), stream.below(width - w + 1), h, w};
  }
  return {};
}

Pixels augmented(const ImageSet& set, const Occurrence& what, const Augmentation& a,
                 const std::vector<std::uint8_t>& fill) {
  Pixels image = a.crop_scale < 1 ? original(set, what.sample) : fitted(set, what.sample);
  if (a.crop_scale < 1) {
    RandomStream stream = stream_of("data.crop", what);
    const PixelBox part = draw_crop(image.height, image.width, a.crop_scale, stream);
    image = resize(image, part, set.height, set.width, Interpolation::bicubic);
    if (a.flip && stream.happens(0.5)) mirror(image);
  } else if (a.places()) {
    const std::uint64_t seed =
        what.copy == 0 ? what.seed : random_key(what.seed, fmt::format("data.copy.{}", what.copy));
    image = placed(image, draw_placement(a, seed, what.epoch, what.sample));
  }
  if (a.rand_augment.operations > 0) {
    RandomStream stream = stream_of("data.rand_augment", what);
    image = apply(a.rand_augment, std::move(image), fill, stream);
  }
  return image;
}

void erase_image(float* image, std::int64_t channels, std::int64_t height, std::int64_t width, const Occurrence& what,
                 double probability) {
  RandomStream stream = stream_of("data.erase", what);
  const PixelBox part = draw_erasure(height, width, probability, stream);
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = part.top; y < part.top + part.height; ++y)
      for (std::int64_t x = part.left; x < part.left + part.width; ++x)
        image[(c * height + y) * width + x] = static_cast<float>(stream.normal());
}

double mix_batch(std::vector<float>& images, std::int64_t count, std::int64_t channels, std::int64_t height,
                 std::int64_t width, const Augmentation& a, RandomStream& stream) {
  const bool cuts = a.cutmix > 0 && (a.mixup == 0 || stream.happens(0.5));
  const double alpha = cuts ? a.cutmix : a.mixup;
  double share = stream.beta(alpha, alpha);
  PixelBox part{0, 0, height, width};
  if (cuts) {  // a rectangle with the ratio of the image's sides, clipped at the border
    const double side = std::sqrt(1 - share);
    const auto h = static_cast<std::int64_t>(static_cast<double>(height) * side),
               w = static_cast<std::int64_t>(static_cast<double>(width) * side);
    const std::int64_t y = stream.below(height), x = stream.below(width);
    const std::int64_t top = std::max<std::int64_t>(y - h / 2, 0), left = std::max<std::int64_t>(x - w / 2, 0);
    part = {top, left, std::min(y + h / 2, height) - top, std::min(x + w / 2, width) - left};
    share = 1 - static_cast<double>(part.height * part.width) / static_cast<double>(height * width);
  }
  const auto own = static_cast<float>(cuts ? 0 : share), other = static_cast<float>(cuts ? 1 : 1 - share);
  for (std::int64_t i = 0; i < count / 2; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = part.top; y < part.top + part.height; ++y) {
        float* first = &images[static_cast<std::size_t>(((i * channels + c) * height + y) * width)];
        float* last = &images[static_cast<std::size_t>((((count - 1 - i) * channels + c) * height + y) * width)];
        for (std::int64_t x = part.left; x < part.left + part.width; ++x) {
          const float a_pixel = first[x], b_pixel = last[x];
          first[x] = own * a_pixel + other * b_pixel, last[x] = own * b_pixel + other * a_pixel;
        }
      }
  return share;
}

}  // namespace plumb::vision
