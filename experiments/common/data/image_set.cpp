#include "experiments/common/data/image_set.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace plumb::lab {
namespace {

using Histogram = std::array<std::int64_t, 256>;

// Integer counts make the sums independent of their order.
std::vector<Histogram> histograms(const ImageSet& set) {
  std::vector<Histogram> counts(static_cast<std::size_t>(set.channels), Histogram{});
  const std::uint8_t* pixel = set.pixels.data();
  for (std::int64_t n = 0; n < set.size(); ++n)
    for (Histogram& channel : counts)
      for (std::int64_t i = 0; i < set.height * set.width; ++i) ++channel[*pixel++];
  return counts;
}

}  // namespace

Normalization normalization_of(const ImageSet& set) {
  check_consistent(set, "normalization_of");
  const auto count = static_cast<double>(set.size() * set.height * set.width);
  Normalization result;
  for (const Histogram& channel : histograms(set)) {
    double mean = 0, variance = 0;
    for (std::size_t v = 0; v < 256; ++v) mean += static_cast<double>(channel[v]) * (static_cast<double>(v) / 255.0);
    mean /= count;
    for (std::size_t v = 0; v < 256; ++v) {
      const double d = static_cast<double>(v) / 255.0 - mean;
      variance += static_cast<double>(channel[v]) * (d * d);
    }
    const double deviation = std::sqrt(variance / count);
    result.mean.push_back(static_cast<float>(mean));
    result.std.push_back(deviation > 1e-6 ? static_cast<float>(deviation) : 1.0f);
  }
  return result;
}

ImageSet pad_to(ImageSet set, std::int64_t side) {
  const std::int64_t height = std::max(set.height, side), width = std::max(set.width, side);
  if (height == set.height && width == set.width) return set;
  const std::int64_t top = (height - set.height) / 2, left = (width - set.width) / 2;
  std::vector<std::uint8_t> padded(static_cast<std::size_t>(set.size() * set.channels * height * width), 0);
  const std::uint8_t* from = set.pixels.data();
  for (std::int64_t plane = 0; plane < set.size() * set.channels; ++plane)
    for (std::int64_t y = 0; y < set.height; ++y, from += set.width)
      std::copy_n(from, set.width, padded.data() + (plane * height + top + y) * width + left);
  set.pixels = std::move(padded);
  set.height = height;
  set.width = width;
  return set;
}

void check_consistent(const ImageSet& set, const std::string& who) {
  check(set.channels > 0 && set.height > 0 && set.width > 0, "[{}] expected images of at least one pixel, got {}x{}x{}", who, set.channels,
        set.height, set.width);
  check(set.size() > 0, "[{}] expected at least one image, got an empty set", who);
  check(set.pixels.size() == static_cast<std::size_t>(set.size() * set.image_bytes()), "[{}] expected {} images of {}x{}x{} bytes, got {} bytes", who,
        set.size(), set.channels, set.height, set.width, set.pixels.size());
  for (const std::int32_t label : set.labels)
    check(label >= 0 && label < set.classes, "[{}] expected labels in 0..{}, got {}", who, set.classes - 1, label);
}

}  // namespace plumb::lab
