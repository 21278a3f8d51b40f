#include "experiments/vision/data/idx.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "experiments/lab/data/input_file.h"

namespace plumb::vision {
namespace {

constexpr std::int32_t classes = 10;
constexpr std::int64_t padded_side = 32;
constexpr std::uint64_t most_side = 1024;  // of an image; InputFile::most_memory() limits all images after the padding

constexpr std::uint32_t big_endian(const std::uint8_t* b) {
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | std::uint32_t{b[3]};
}

std::string hint(std::uint32_t magic) {
  if (magic == 0x00000801u) return "; is this the file of labels?";
  if (magic == 0x00000803u) return "; is this the file of images?";
  if (magic >> 16 == 0) return "; is this an IDX file with another element type?";
  return "; is this a file in another format?";
}

// Reads the header of a file and returns the sizes of its dimensions.
template <std::size_t dims>
std::array<std::uint64_t, dims> read_header(InputFile& file) {
  std::array<std::uint8_t, 4 * (dims + 1)> header{};
  const std::size_t got = file.read(header);
  const std::uint32_t magic = big_endian(header.data()), expected = 0x00000800u + static_cast<std::uint32_t>(dims);
  check(got < 4 || magic == expected,
        "{}: expected IDX magic 0x{:08x} (unsigned bytes, {} dimension{}), got 0x{:08x}{}", file.path(), expected, dims,
        dims == 1 ? "" : "s", magic, hint(magic));
  check(got == header.size(), "{}: expected an IDX header of {} bytes, got {} bytes: the file is cut off", file.path(),
        header.size(), got);
  std::array<std::uint64_t, dims> sizes{};
  for (std::size_t i = 0; i < dims; ++i) sizes[i] = big_endian(header.data() + 4 * (i + 1));
  return sizes;
}

void read_images(const std::string& path, ImageSet& set, std::uint64_t& count) {
  InputFile file(path);
  const auto [images, height, width] = read_header<3>(file);
  check(images > 0 && height > 0 && width > 0, "{}: expected at least one image of at least one pixel, got {} of {}x{}",
        path, images, height, width);
  check(height <= most_side && width <= most_side, "{}: expected images of at most {}x{}, got a header with {}x{}",
        path, most_side, most_side, height, width);
  const std::string what = fmt::format("{} images of {}x{}", images, height, width);
  const auto padded = [](std::uint64_t extent) { return std::max<std::uint64_t>(extent, padded_side); };
  const std::uint64_t needed = images * padded(height) * padded(width);
  check(needed <= file.most_memory(), "{}: expected images of at most {} bytes in memory, got {}, which take {} bytes",
        path, file.most_memory(), what, needed);
  file.append(set.pixels, images * height * width, what);
  file.expect_end(what);
  count = images;
  set.channels = 1;
  set.height = static_cast<std::int64_t>(height);
  set.width = static_cast<std::int64_t>(width);
}

}  // namespace

ImageSet read_idx(const std::string& images_path, const std::string& labels_path) {
  ImageSet set;
  set.classes = classes;
  std::uint64_t images = 0;
  read_images(images_path, set, images);

  InputFile file(labels_path);
  const auto [count] = read_header<1>(file);
  check(count == images, "{}: expected {} labels, one for each image of {}, got a header with {}", labels_path, images,
        images_path, count);
  std::vector<std::uint8_t> labels;
  file.append(labels, count, fmt::format("{} labels", count));
  file.expect_end(fmt::format("{} labels", count));
  for (std::size_t i = 0; i < labels.size(); ++i)
    check(labels[i] < classes, "{}: expected labels in 0..{}, got {} for image {}", labels_path, classes - 1, labels[i],
          i);
  set.labels.assign(labels.begin(), labels.end());
  return pad_to(std::move(set), padded_side);
}

}  // namespace plumb::vision
