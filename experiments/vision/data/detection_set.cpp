#include "experiments/vision/data/detection_set.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "autograd/ops.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "experiments/lab/console.h"
#include "experiments/vision/data/image_file.h"

namespace plumb::vision {
namespace {

namespace fs = std::filesystem;

// Copies an image into its place of a batch [B, 3, H, W] of zeros, normalized.
void place(const Pixels& image, const Normalization& n, bool mirrored, std::int64_t H, std::int64_t W, float* to) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::uint8_t* from = image.plane(c);
    const auto at = static_cast<std::size_t>(c);
    for (std::int64_t y = 0; y < image.height; ++y)
      for (std::int64_t x = 0; x < image.width; ++x) {
        const std::int64_t source = mirrored ? image.width - 1 - x : x;
        to[(c * H + y) * W + x] =
            (static_cast<float>(from[y * image.width + source]) / 255.0F - n.mean[at]) / n.std[at];
      }
  }
}

nn::Target mirror_of(nn::Target t) {
  t.box.x0 = 1 - std::exchange(t.box.x1, 1 - t.box.x0);
  return t;
}

HostDetectionBatch batch_of(const std::vector<Pixels>& images, const Normalization& n,
                            const std::vector<bool>& mirrored) {
  std::int64_t H = 0, W = 0;
  bool padded = false;
  for (const Pixels& image : images) {
    check(image.channels == std::ssize(n.mean), "[batch_of] expected images of {} channels, got {}", n.mean.size(),
          image.channels);
    H = std::max(H, image.height), W = std::max(W, image.width);
  }
  const auto B = std::ssize(images);
  const std::int64_t channels = std::ssize(n.mean), numbers = channels * H * W;
  std::vector<float> values(static_cast<std::size_t>(B * numbers), 0);
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(B * H * W), 0);
  for (std::int64_t b = 0; b < B; ++b) {
    const Pixels& image = images[static_cast<std::size_t>(b)];
    place(image, n, !mirrored.empty() && mirrored[static_cast<std::size_t>(b)], H, W, values.data() + b * numbers);
    padded = padded || image.height < H || image.width < W;
    for (std::int64_t y = 0; y < image.height; ++y)
      std::fill_n(keep.begin() + (b * H + y) * W, image.width, std::uint8_t{1});
  }
  if (!padded) keep.clear();
  return {.shape = {B, channels, H, W}, .images = std::move(values), .keep = std::move(keep)};
}

// Says once in a program that a photo has an EXIF orientation which its sides cannot tell from none. Then the sides in
// the file of annotations do not show whether its author drew the boxes in the stored pixels.
void note_turn(const std::string& path, const Pixels& image) {
  static std::atomic<bool> noted = false;
  if (noted) return;
  const int orientation = exif_orientation(path);
  if (orientation == 1 || (orientation > 4 && image.width != image.height) || noted.exchange(true)) return;
  note_error(
      fmt::format("{}: a viewer turns or mirrors this photo (EXIF orientation {}); its boxes are read in the stored "
                  "pixels, as by pycocotools and torchvision; further such photos are not named\n",
                  path, orientation));
}

}  // namespace

std::string DetectionSet::path(const CocoImage& image) const { return (fs::path(folder) / image.file).string(); }

std::int64_t DetectionSet::longest_side() const {
  if (side > 0) return side;
  std::int64_t longest = 0;
  for (const CocoImage& image : truth.images) longest = std::max({longest, image.width, image.height});
  return longest;
}

Pixels fitted(const Pixels& image, std::int64_t side) {
  const std::int64_t longer = std::max(image.height, image.width);
  if (side == 0 || longer == side) return image;
  const auto scaled = [&](std::int64_t length) {
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(length) * static_cast<double>(side) / static_cast<double>(longer)));
  };
  return resize(image, {0, 0, image.height, image.width}, scaled(image.height), scaled(image.width),
                Interpolation::bicubic);
}

Pixels reduced(const Pixels& image, std::int64_t most) {
  return fitted(image, std::min(most, std::max(image.height, image.width)));
}

Pixels fitted(const DetectionSet& set, std::int64_t index) {
  if (!set.in_files()) return fitted(set.pixels[static_cast<std::size_t>(index)], set.side);
  const std::string path = set.path(set.truth.images[static_cast<std::size_t>(index)]);
  const Pixels image = read_image(path);
  const CocoImage& stated = set.truth.images[static_cast<std::size_t>(index)];
  const bool same = image.width == stated.width && image.height == stated.height;
  const bool turned = !same && image.width == stated.height && image.height == stated.width;
  check(same, "{}: expected {} x {} pixels, as the file of annotations says of image {}, got {} x {}{}", path,
        stated.width, stated.height, stated.id, image.width, image.height,
        turned && exif_orientation(path) > 4
            ? "; a viewer turns this photo (EXIF), but boxes are in the stored pixels: store the photo turned"
            : "");
  note_turn(path, image);
  return fitted(image, set.side);
}

nn::Targets targets_of(const DetectionSet& set) {
  std::map<std::int64_t, std::size_t> image, label;
  for (std::size_t i = 0; i < set.truth.images.size(); ++i) image[set.truth.images[i].id] = i;
  for (std::size_t c = 0; c < set.truth.categories.size(); ++c) label[set.truth.categories[c].id] = c;
  nn::Targets targets(set.truth.images.size());
  for (const CocoAnnotation& a : set.truth.annotations) {
    if (a.crowd) continue;
    const std::size_t i = image.at(a.image);
    const auto w = static_cast<double>(set.truth.images[i].width), h = static_cast<double>(set.truth.images[i].height);
    const auto inside = [](double share) { return std::clamp(share, 0.0, 1.0); };
    const nn::Box box{inside(a.box.x / w), inside(a.box.y / h), inside((a.box.x + a.box.width) / w),
                      inside((a.box.y + a.box.height) / h)};
    if (box.width() > 0 && box.height() > 0)
      targets[i].push_back({static_cast<std::int64_t>(label.at(a.category)), box});
  }
  return targets;
}

DetectionSet open_coco(const std::string& annotations, const std::string& images, std::int64_t side) {
  DetectionSet set{.truth = read_coco(annotations), .folder = images, .side = side};
  check(set.size() > 0 && set.classes() > 0, "{}: expected at least one image and one category, got {} and {}",
        annotations, set.size(), set.classes());
  std::vector<std::string> missing;
  for (const CocoImage& image : set.truth.images)
    if (!fs::is_regular_file(set.path(image))) missing.push_back(image.file);
  const std::vector<std::string> first(missing.begin(),
                                       missing.begin() + std::min<std::ptrdiff_t>(5, std::ssize(missing)));
  check(missing.empty(), "{}: {} of {} images of {} are not in this folder, such as {}", images, missing.size(),
        set.size(), annotations, fmt::join(first, ", "));
  return set;
}

void write_coco(const DetectionSet& set, const std::string& folder) {
  check(!set.in_files(), "[write_coco] expected images in memory, got those of {}", set.folder);
  fs::create_directories(fs::path(folder) / "images");
  for (std::int64_t i = 0; i < set.size(); ++i)
    write_file_atomically(fs::path(folder) / "images" / set.truth.images[static_cast<std::size_t>(i)].file,
                          png(set.pixels[static_cast<std::size_t>(i)]));
  write_file_atomically(fs::path(folder) / "instances.json", coco_json(set.truth));
}

HostDetectionBatch host_batch_of(const DetectionSet& set, const nn::Targets& targets,
                                 const Normalization& normalization, const std::vector<std::int64_t>& indices,
                                 const std::vector<bool>& mirrored) {
  std::vector<Pixels> images;
  for (const std::int64_t i : indices) images.push_back(fitted(set, i));
  HostDetectionBatch batch = batch_of(images, normalization, mirrored);
  for (std::size_t b = 0; b < indices.size(); ++b) {
    batch.targets.push_back(targets[static_cast<std::size_t>(indices[b])]);
    if (!mirrored.empty() && mirrored[b])
      for (nn::Target& t : batch.targets.back()) t = mirror_of(t);
  }
  return batch;
}

DetectionBatch to_tensors(const HostDetectionBatch& batch) {
  const Device device = defaults().device;
  Tensor images(array_from(batch.images, batch.shape, device));
  if (defaults().dtype != DType::f32) images = cast(images, defaults().dtype);
  const Shape pixels{batch.shape[0], batch.shape[2], batch.shape[3]};
  return {.images = images,
          .keep = batch.keep.empty() ? Tensor() : Tensor(array_from(batch.keep, pixels, device)),
          .targets = batch.targets};
}

DetectionBatch batch_of(const DetectionSet& set, const nn::Targets& targets, const Normalization& normalization,
                        const std::vector<std::int64_t>& indices, const std::vector<bool>& mirrored) {
  return to_tensors(host_batch_of(set, targets, normalization, indices, mirrored));
}

DetectionBatch batch_of(const Pixels& image, const Normalization& normalization) {
  return to_tensors(batch_of(std::vector{image}, normalization, {}));
}

}  // namespace plumb::vision
