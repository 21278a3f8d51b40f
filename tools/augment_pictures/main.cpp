// augment_pictures SOURCE_DIR [--check]: draws the pictures of docs/augmentation/. The pictures show every
// augmentation, and the masks of DropKey. With --check the program compares the pictures pixel by pixel instead, and
// exits with 1 if a picture differs.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numbers>

#include "core/atomic_file.h"
#include "core/drop_key.h"
#include "core/random.h"
#include "experiments/lab/console.h"
#include "experiments/vision/data/augment.h"
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/pictures/attention_images.h"
#include "experiments/vision/pictures/mask_images.h"
#include "nn/layers/drop_key.h"

namespace {

using namespace plumb;
using vision::Pixels;
namespace fs = std::filesystem;

constexpr std::int64_t side = 96, copies = 4;

// The example picture shows a meadow with a house and the sun. The picture has edges, gradients, light areas and dark
// areas. The second picture is mirrored and has other colours.
Pixels scene(bool second) {
  Pixels image{3, side, side, std::vector<std::uint8_t>(3 * side * side)};
  const auto set = [&](std::int64_t y, std::int64_t x, double r, double g, double b) {
    const double colours[] = {r, g, b};
    for (int c = 0; c < 3; ++c)
      image.plane(c)[y * side + (second ? side - 1 - x : x)] =
          static_cast<std::uint8_t>(std::lround(std::min(255.0, std::max(0.0, colours[c]))));
  };
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < side; ++x) {
      const double u = static_cast<double>(x) / side, v = static_cast<double>(y) / side,
                   hill = 0.68 + 0.07 * std::sin(2 * std::numbers::pi * u);
      if (second)
        set(y, x, 60 + 170 * v, 40 + 90 * v, 110 + 20 * v);
      else
        set(y, x, 90 + 120 * v, 150 + 80 * v, 235);
      if (std::hypot(u - 0.75, v - 0.2) < 0.1) set(y, x, 250, 225, second ? 190 : 90);
      if (v > hill)
        set(y, x, 50 + 60 * (v - hill), second ? 70 : 120 + 90 * std::sin(40 * u + 25 * v) * (v - hill), 45);
      const bool wall = std::abs(u - 0.32) < 0.16 && v > 0.47 && v<0.74, roof = v> 0.3 && v <= 0.47 &&
                        std::abs(u - 0.32) < 0.21 * (v - 0.3) / 0.17;
      if (wall) set(y, x, 205, 180, 150);
      if (roof) set(y, x, 165, 50, 40);
      if (wall && std::abs(u - 0.32) < 0.04 && v > 0.58) set(y, x, 70, 45, 30);
    }
  return image;
}

Pixels row(const Pixels& first, std::vector<Pixels> others) {
  others.insert(others.begin(), first);
  return vision::beside(others);
}

// A picture made of float values in 0..1. The values are not normalized.
Pixels from_floats(const float* values) {
  Pixels image{3, side, side, std::vector<std::uint8_t>(3 * side * side)};
  for (std::size_t i = 0; i < image.bytes.size(); ++i)
    image.bytes[i] = static_cast<std::uint8_t>(std::lround(255 * std::min(1.0f, std::max(0.0f, values[i]))));
  return image;
}

std::vector<float> to_floats(const std::vector<Pixels>& images) {
  std::vector<float> values;
  for (const Pixels& image : images)
    for (const std::uint8_t byte : image.bytes) values.push_back(static_cast<float>(byte) / 255.0f);
  return values;
}

// The keys that DropKey drops for four queries of 12 x 12 patches. Every form drops a share of 0.3.
Pixels masks(DropShape shape) {
  constexpr KeyGrid grid{12, 12};
  const nn::DropKey by_rate = nn::by_rate({.rate = 0.3, .shape = shape, .match = nn::DropMatch::share}, grid);
  const KeyMask drop =
      key_mask(by_rate.rate, shape, 0, DropSharing::per_entry, grid, grid.cells(), random_key(1, "picture"));
  std::vector<Pixels> rows;
  for (std::int64_t query = 0; query < 4; ++query)
    rows.push_back(vision::mask_picture(drop, grid, grid.cells(), query));
  return vision::beside(rows, 0, vision::mask_gap);
}

std::map<std::string, Pixels> pictures() {
  const Pixels first = scene(false), second = scene(true);
  std::map<std::string, Pixels> all;
  vision::ImageSet set{
      .channels = 3, .height = side, .width = side, .classes = 2, .pixels = first.bytes, .labels = {0, 1}};
  set.pixels.insert(set.pixels.end(), second.bytes.begin(), second.bytes.end());
  const std::vector<std::uint8_t> fill{124, 116, 104};
  const auto augmented = [&](const std::string& name, const vision::Augmentation& a) {
    std::vector<Pixels> drawn;
    for (std::uint32_t epoch = 0; epoch < copies; ++epoch)
      drawn.push_back(vision::augmented(set, {1, epoch, 0, 0}, a, fill));
    all[name] = row(first, drawn);
  };
  augmented("flip", {.flip = true});
  std::vector<Pixels> repeated;  // every copy of an image of 96 pixels in the batch, before erasing and mixing
  for (std::int64_t copy = 0; copy < 3; ++copy)
    repeated.push_back(vision::augmented(set, {1, 0, 0, copy}, vision::deit_augmentation(side), fill));
  all["repeated_augmentation"] = row(first, repeated);
  augmented("crop_padding", {.crop_padding = 12, .flip = true});
  augmented("crop_scale", {.crop_scale = 0.08});
  augmented("rand_augment", {.rand_augment = {.operations = 2}});
  for (const std::string& name : vision::rand_augment_names()) {
    std::vector<Pixels> drawn;
    for (const double magnitude : {3.0, 6.0, 9.0}) {
      lab::RandomStream stream(3, "picture." + name, 0, 0);
      drawn.push_back(vision::apply(name, magnitude, first, fill, stream));
    }
    all[name] = row(first, drawn);
  }
  std::vector<Pixels> erased;
  for (std::uint32_t epoch = 0; epoch < copies; ++epoch) {
    std::vector<float> values = to_floats({first});
    vision::erase_image(values.data(), 3, side, side, {5, epoch, 0, 0}, 1);
    erased.push_back(from_floats(values.data()));
  }
  all["random_erasing"] = row(first, erased);
  for (const bool cuts : {false, true}) {
    std::vector<Pixels> mixed;
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<float> values = to_floats({first, second});
      lab::RandomStream stream(2, "picture.mix", epoch, 0);
      vision::mix_batch(values, 2, 3, side, side, {.mixup = cuts ? 0 : 0.8, .cutmix = cuts ? 1.0 : 0}, stream);
      mixed.push_back(from_floats(values.data()));
    }
    mixed.insert(mixed.begin(), second);
    all[cuts ? "cutmix" : "mixup"] = row(first, mixed);
  }
  for (const auto& [name, shape] : {std::pair("drop_key_plain", DropShape::plain),
                                    {"drop_key_block", DropShape::block},
                                    {"drop_key_cross", DropShape::cross}})
    all[name] = masks(shape);
  return all;
}

int run(const fs::path& root, bool check_only) {
  const fs::path folder = root / "docs/augmentation";
  int other = 0;
  for (const auto& [name, picture] : pictures()) {
    const fs::path file = folder / (name + ".png");
    if (!check_only) {
      fs::create_directories(folder);
      write_file_atomically(file, vision::png(picture));
    } else if (!fs::exists(file) || vision::read_image(file.string()).bytes != picture.bytes) {
      std::fprintf(stderr, "%s differs from the picture that the code draws; to update it, run: augment_pictures %s\n",
                   file.c_str(), root.c_str());
      ++other;
    }
  }
  return other > 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    if (argc < 2) throw UsageError("usage: augment_pictures SOURCE_DIR [--check]");
    return run(argv[1], argc > 2 && std::string(argv[2]) == "--check");
  });
}
