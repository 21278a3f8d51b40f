#include "experiments/vision/data/image_set.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/ranges.h>

#include "core/enum_names.h"
#include "core/error.h"
#include "experiments/vision/data/image_file.h"

namespace plumb::vision {
namespace {

using Histogram = std::array<std::int64_t, 256>;

// The histogram of each channel. normalization_of() computes sums from these integer counts, so the sums do not depend
// on the order of the pixels.
std::vector<Histogram> histograms(const ImageSet& set) {
  std::vector<Histogram> counts(static_cast<std::size_t>(set.channels), Histogram{});
  for (std::int64_t n = 0; n < set.size(); ++n) {
    const Pixels read = set.in_files() ? fitted(set, n) : Pixels();
    const std::uint8_t* pixel = set.in_files() ? read.bytes.data() : set.image(n);
    for (Histogram& channel : counts)
      for (std::int64_t i = 0; i < set.height * set.width; ++i) ++channel[*pixel++];
  }
  return counts;
}

}  // namespace

Pixels original(const ImageSet& set, std::int64_t index) {
  if (set.in_files()) return read_image(set.files[static_cast<std::size_t>(index)]);
  return {set.channels, set.height, set.width, {set.image(index), set.image(index) + set.image_bytes()}};
}

Pixels fitted(const ImageSet& set, std::int64_t index) {
  if (!set.in_files()) return original(set, index);
  const Pixels image = original(set, index);
  try {
    return fitted(image, set.height, set.width, set.crop);
  } catch (const Error& e) {
    fail(fmt::format("{}: {}", set.files[static_cast<std::size_t>(index)], e.what()));
  }
}

Pixels fitted(const Pixels& image, std::int64_t height, std::int64_t width, double crop) {
  check(0.01 <= crop && crop <= 1, "[fitted] expected a crop from 0.01 to 1, got {}", crop);
  const std::int64_t shorter = std::min(image.height, image.width);
  const auto side =
      std::max(std::max(height, width),
               static_cast<std::int64_t>(std::floor(static_cast<double>(std::max(height, width)) / crop)));
  // The longer side and the centre are rounded as in torchvision.
  const std::int64_t tall = side * image.height / shorter, wide = side * image.width / shorter;
  check(tall <= (1 << 26) / wide, "expected an image with sides of more similar length, got {} x {}", image.width,
        image.height);
  const Pixels whole = tall == image.height && wide == image.width
                           ? image
                           : resize(image, {0, 0, image.height, image.width}, tall, wide, Interpolation::bicubic);
  const std::int64_t top = std::lrint(static_cast<double>(tall - height) / 2),
                     left = std::lrint(static_cast<double>(wide - width) / 2);
  Pixels part{image.channels, height, width, {}};
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t y = 0; y < height; ++y) {
      const std::uint8_t* row = whole.plane(c) + (top + y) * wide + left;
      part.bytes.insert(part.bytes.end(), row, row + width);
    }
  return part;
}

Normalization normalization_of(const ImageSet& set, NormalizationKind kind) {
  if (kind == NormalizationKind::data) return normalization_of(set);
  const auto channels = static_cast<std::size_t>(set.channels);
  if (kind == NormalizationKind::half) return {std::vector(channels, 0.5f), std::vector(channels, 0.5f)};
  check(set.channels == 3, "[normalization] expected three channels for {}, got {}; choose data or half",
        enum_name(kind), set.channels);
  return {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
}

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
  check(!set.in_files(), "[pad_to] expected images in memory, got {} files", set.files.size());
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
  check(set.channels > 0 && set.height > 0 && set.width > 0, "[{}] expected images of at least one pixel, got {}x{}x{}",
        who, set.channels, set.height, set.width);
  check(set.size() > 0, "[{}] expected at least one image, got an empty set", who);
  if (set.in_files())
    check(static_cast<std::int64_t>(set.files.size()) == set.size() && set.pixels.empty() && set.crop > 0 &&
              set.crop <= 1,
          "[{}] expected a file for each of {} labels and a crop above 0 and up to 1, got {} files, {} bytes in memory "
          "and a crop of {}",
          who, set.size(), set.files.size(), set.pixels.size(), set.crop);
  else
    check(set.pixels.size() == static_cast<std::size_t>(set.size() * set.image_bytes()),
          "[{}] expected {} images of {}x{}x{} bytes, got {} bytes", who, set.size(), set.channels, set.height,
          set.width, set.pixels.size());
  for (const std::int32_t label : set.labels)
    check(label >= 0 && label < set.classes, "[{}] expected labels in 0..{}, got {}", who, set.classes - 1, label);
}

}  // namespace plumb::vision
