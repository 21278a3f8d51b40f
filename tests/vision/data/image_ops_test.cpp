// Tests of the operations on images against timm and Pillow (tests/golden/make_augment.py), and of the random draws of
// the augmentation.
#include "experiments/vision/data/image_ops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "experiments/vision/data/augment.h"
#include "nn/io/safetensors.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using plumb::test::contains;
using plumb::test::error_of;

namespace {

const nn::TensorFile& golden_augment() {
  static const nn::TensorFile file = nn::read_safetensors(test::source_dir() + "/tests/golden/augment.safetensors");
  return file;
}

Pixels pixels_of(const Array& array) {
  const std::uint8_t* bytes = array.data<std::uint8_t>();
  return {array.dim(0), array.dim(1), array.dim(2), {bytes, bytes + array.numel()}};
}
Pixels pixels_of(const Tensor& tensor) { return pixels_of(tensor.array()); }

std::vector<std::string> parts_of(const std::string& name, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : name) c == separator ? void(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

// The largest difference between two bytes at the same place, and the number of bytes that differ.
std::pair<int, int> difference(const Pixels& a, const Pixels& b) {
  REQUIRE((a.channels == b.channels && a.height == b.height && a.width == b.width));
  int largest = 0, count = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    const int d = std::abs(static_cast<int>(a.bytes[i]) - static_cast<int>(b.bytes[i]));
    largest = std::max(largest, d), count += d > 0;
  }
  return {largest, count};
}

// The largest distance between two empirical distribution functions (Kolmogorov and Smirnov).
double distance(std::vector<double> a, std::vector<double> b) {
  std::ranges::sort(a), std::ranges::sort(b);
  double largest = 0;
  for (const double v : a)
    largest = std::max(
        largest,
        std::abs(static_cast<double>(std::ranges::upper_bound(a, v) - a.begin()) / static_cast<double>(a.size()) -
                 static_cast<double>(std::ranges::upper_bound(b, v) - b.begin()) / static_cast<double>(b.size())));
  return largest;
}

}  // namespace

TEST_CASE("Every operation of RandAugment equals timm's in both directions") {
  const std::set<std::string> geometric{"rotate", "shear_x", "shear_y", "translate_x", "translate_y"};
  for (const std::string kind : {"colour", "grey"}) {
    const Pixels image = pixels_of(golden_augment().tensors.at(kind + "/image"));
    const std::vector<std::uint8_t> fill =
        kind == "colour" ? std::vector<std::uint8_t>{120, 110, 100} : std::vector<std::uint8_t>{120};
    std::map<std::pair<std::string, int>, std::vector<Pixels>> variants;  // possible results, by operation and level
    for (const auto& [name, tensor] : golden_augment().tensors)
      if (const auto parts = parts_of(name, '/');
          parts.size() == 5 && parts[0] == kind && (geometric.contains(parts[1]) ? parts[4] == "bicubic" : true))
        variants[{parts[1], std::stoi(parts[2])}].push_back(pixels_of(tensor));
    std::set<std::string> seen;
    for (const auto& [key, expected] : variants) {
      INFO(kind << " " << key.first << " at " << key.second);
      seen.insert(key.first);
      std::vector<bool> met(expected.size());
      for (std::int64_t item = 0; item < 60; ++item) {
        RandomStream stream(0, "test", 0, item);
        const Pixels result = apply(key.first, key.second, image, fill, stream);
        bool any = false;
        for (std::size_t v = 0; v < expected.size(); ++v) {
          const auto [largest, count] = difference(result, expected[v]);
          // The results may differ at values on a rounding boundary, which may be rounded up or down.
          const bool same = largest <= 1 && count <= static_cast<int>(result.bytes.size()) / 100;
          met[v] = met[v] || same, any = any || same;
        }
        REQUIRE(any);
      }
      CHECK(std::ranges::count(met, true) == static_cast<std::int64_t>(met.size()));
    }
    CHECK(std::vector<std::string>(seen.begin(), seen.end()) == [] {
      std::vector<std::string> names = rand_augment_names();
      std::ranges::sort(names);
      return names;
    }());
  }
  RandomStream stream(0, "test", 0, 0);
  CHECK_THAT(error_of([&] { apply("blur", 1, Pixels{}, {}, stream); }),
             contains("[rand_augment] expected one of auto_contrast, ") && contains("got blur"));
}

TEST_CASE("Resized parts of an image have the same bytes as Pillow's") {
  int cases = 0;
  for (const auto& [name, tensor] : golden_augment().tensors) {
    const auto parts = parts_of(name, '/');
    if (parts.size() != 4 || parts[1] != "resize") continue;
    INFO(name);
    const auto numbers = parts_of(parts[2], ',');
    const auto at = [&](int i) { return static_cast<std::int64_t>(std::stoi(numbers[static_cast<std::size_t>(i)])); };
    const Pixels image = pixels_of(golden_augment().tensors.at(parts[0] + "/image"));
    const Pixels result = resize(image, {at(0), at(1), at(2), at(3)}, at(4), at(5),
                                 parts[3] == "bicubic" ? Interpolation::bicubic : Interpolation::bilinear);
    CHECK(difference(result, pixels_of(tensor)) == std::pair(0, 0));
    ++cases;
  }
  CHECK(cases == 16);
  CHECK_THAT(error_of([] {
               resize(Pixels{1, 2, 2, {1, 2, 3, 4}}, {1, 0, 2, 2}, 4, 4, Interpolation::bicubic);
             }),
             contains("[resize] expected a part of an image of 2 x 2"));
}

TEST_CASE("RandAugment draws operations evenly and applies each with probability 1/2 and is reproducible") {
  const Pixels image = pixels_of(golden_augment().tensors.at("colour/image"));
  const std::vector<std::uint8_t> fill{120, 110, 100};
  int unchanged = 0;
  const int count = 400;
  for (std::int64_t item = 0; item < count; ++item) {
    RandomStream one(3, "test", 1, item), again(3, "test", 1, item), other(3, "test", 2, item);
    const Pixels result = apply({.operations = 2}, image, fill, one);
    CHECK(difference(result, apply({.operations = 2}, image, fill, again)).first == 0);
    unchanged += difference(result, image).first == 0;
    apply({.operations = 2}, image, fill, other);
  }
  // One operation leaves the image unchanged with probability 1/2 + 1/30: the operation is skipped with probability
  // 1/2, and otherwise it is auto_contrast with probability 1/15. auto_contrast keeps an image that has the values 0
  // and 255. Two operations leave the image unchanged with probability (1/2 + 1/30)^2.
  CHECK(unchanged / static_cast<double>(count) == Approx(0.284).margin(4 * std::sqrt(0.25 * 0.75 / count)));
}

TEST_CASE("Resized crops have the same range of areas and of ratios of sides as timm's") {
  double smallest = 1, largest = 0;
  for (std::int64_t item = 0; item < 2000; ++item) {
    RandomStream stream(0, "test", 0, item);
    const PixelBox part = draw_crop(224, 224, 0.08, stream);
    REQUIRE((part.top >= 0 && part.left >= 0 && part.top + part.height <= 224 && part.left + part.width <= 224));
    const double share = static_cast<double>(part.height * part.width) / (224 * 224),
                 ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    smallest = std::min(smallest, share), largest = std::max(largest, share);
    CHECK((ratio > 0.74 && ratio < 1.35));
  }
  CHECK((smallest > 0.079 && smallest < 0.09));
  CHECK((largest > 0.97 && largest <= 1));
  // No drawn crop fits into this image, so the crop is the largest centred part.
  RandomStream stream(0, "test", 0, 0);
  const PixelBox middle = draw_crop(4, 400, 0.9, stream);
  CHECK((middle.height == 4 && middle.width == 5 && middle.left == 197));
}

TEST_CASE("Erasing changes the given share of images and replaces a rectangle by noise") {
  int erased = 0;
  double sum = 0, squares = 0, pixels = 0;
  for (std::int64_t sample = 0; sample < 800; ++sample) {
    std::vector<float> image(3 * 32 * 32, 100.0f);
    erase_image(image.data(), 3, 32, 32, {7, 1, sample, 0}, 0.25);
    const auto hit = std::ranges::count_if(image, [](float v) { return v != 100.0f; });
    if (hit == 0) continue;
    ++erased;
    const double share = static_cast<double>(hit) / (3 * 32 * 32);
    CHECK((share > 0.01 && share < 0.37));
    for (const float v : image)
      if (v != 100.0f) sum += v, squares += static_cast<double>(v) * v, ++pixels;
  }
  CHECK(erased / 800.0 == Approx(0.25).margin(0.06));
  CHECK(sum / pixels == Approx(0).margin(0.02));
  CHECK(squares / pixels == Approx(1).margin(0.03));
}

TEST_CASE("The boxes of crops and of erasing have the same distribution as in torchvision and timm") {
  // Compares the draws with RandomResizedCrop.get_params and RandomErasing._erase. The test repeats these two functions
  // with another random generator: boxes are drawn until one of the boxes fits.
  constexpr std::int64_t side = 128;
  constexpr int draws = 20000;
  std::mt19937_64 random(1);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  struct Form {
    double least, most, ratio;  // least and most: shares of the area; ratio: largest ratio of the sides
    bool whole;                 // true: a box may be as large as the image
    PixelBox (*draw)(RandomStream&);
  };
  for (const Form& form :
       {Form{0.08, 1, 4.0 / 3, true, [](RandomStream& s) { return draw_crop(side, side, 0.08, s); }},
        Form{0.02, 1.0 / 3, 1 / 0.3, false, [](RandomStream& s) { return draw_erasure(side, side, 1, s); }}}) {
    std::vector<double> areas, ratios, tops, theirs[3];
    for (int i = 0; i < draws; ++i) {
      RandomStream stream(0, "test", 0, i);
      const PixelBox box = form.draw(stream);
      areas.push_back(static_cast<double>(box.height * box.width));
      ratios.push_back(std::log(static_cast<double>(box.height) / static_cast<double>(box.width)));
      tops.push_back(static_cast<double>(box.top) / static_cast<double>(side - box.height + 1));
      for (int attempt = 0; attempt < 10; ++attempt) {
        const double area = uniform(form.least, form.most) * side * side,
                     ratio = std::exp(uniform(-std::log(form.ratio), std::log(form.ratio)));
        const auto h = std::lround(std::sqrt(area * ratio)), w = std::lround(std::sqrt(area / ratio));
        if (form.whole ? h > side || w > side : h >= side || w >= side) continue;
        theirs[0].push_back(static_cast<double>(h * w));
        theirs[1].push_back(std::log(static_cast<double>(h) / static_cast<double>(w)));
        theirs[2].push_back(static_cast<double>(std::uniform_int_distribution<long>(0, side - h)(random)) /
                            static_cast<double>(side - h + 1));
        break;
      }
    }
    // If both samples have the same distribution, a larger distance has a probability of 1 in 1,500.
    const double chance = 2 * std::sqrt(2.0 / draws);
    CHECK(distance(areas, theirs[0]) < chance);
    CHECK(distance(ratios, theirs[1]) < chance);
    CHECK(distance(tops, theirs[2]) < chance);
  }
}

TEST_CASE("The boxes of CutMix follow rand_bbox in timm at the time of DeiT") {
  constexpr std::int64_t side = 64;
  constexpr int draws = 4000;
  std::mt19937_64 random(1);
  std::vector<double> shares, theirs;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> images(2 * side * side);
    RandomStream stream(0, "test", 0, i);
    shares.push_back(mix_batch(images, 2, 1, side, side, {.cutmix = 1}, stream));
    // The share is drawn from Beta(1, 1), the uniform distribution.
    const double cut = std::sqrt(1 - std::uniform_real_distribution(0.0, 1.0)(random));
    const auto length = static_cast<std::int64_t>(side * cut);
    const auto covered = [&] {
      const std::int64_t middle = std::uniform_int_distribution<std::int64_t>(0, side - 1)(random);
      return std::min(middle + length / 2, side) - std::max<std::int64_t>(middle - length / 2, 0);
    };
    const std::int64_t height = covered(), width = covered();
    theirs.push_back(1 - static_cast<double>(height * width) / (side * side));
  }
  CHECK(distance(shares, theirs) < 2 * std::sqrt(2.0 / draws));
}

TEST_CASE("If mixup and CutMix are both on then each is used for half of the batches") {
  constexpr int batches = 600;
  int cut = 0;
  for (int i = 0; i < batches; ++i) {
    std::vector<float> images(2 * 16 * 16, 0.0f);
    std::fill(images.begin() + 256, images.end(), 1.0f);
    RandomStream stream(0, "test", 0, i);
    const double share = mix_batch(images, 2, 1, 16, 16, {.mixup = 0.8, .cutmix = 1}, stream);
    const auto whole = [](float v) { return v == 0 || v == 1; };
    cut += std::ranges::all_of(images, whole);
    CHECK(std::accumulate(images.begin(), images.begin() + 256, 0.0) / 256 == Approx(1 - share).margin(1e-5));
  }
  CHECK(std::abs(cut - batches / 2) < 50);  // 50 is four standard deviations
}

TEST_CASE("Mixup and CutMix keep the returned share of every image") {
  const std::int64_t B = 6, C = 2, H = 8, W = 10;
  for (const bool cut : {false, true}) {
    double mean = 0;
    const int batches = 300;
    for (std::int64_t item = 0; item < batches; ++item) {
      std::vector<float> images(static_cast<std::size_t>(B * C * H * W));
      for (std::int64_t i = 0; i < B; ++i)
        std::fill_n(images.begin() + i * C * H * W, C * H * W, static_cast<float>(i));
      RandomStream stream(0, "test", 0, item);
      const double share =
          mix_batch(images, B, C, H, W, cut ? Augmentation{.cutmix = 1} : Augmentation{.mixup = 0.8}, stream);
      mean += share / batches;
      for (std::int64_t i = 0; i < B; ++i) {
        const auto own = static_cast<double>(i), other = static_cast<double>(B - 1 - i);
        double sum = 0;
        for (std::int64_t k = 0; k < C * H * W; ++k) {
          const double v = images[static_cast<std::size_t>(i * C * H * W + k)];
          sum += v;
          if (cut) CHECK((v == own || v == other));
        }
        CHECK(sum / static_cast<double>(C * H * W) == Approx(share * own + (1 - share) * other).margin(1e-5));
      }
    }
    if (!cut) CHECK(mean == Approx(0.5).margin(0.05));
  }
  // A box with the relative side s is clipped at the border. The mean area of the box is (s - s^2 / 4)^2, and s^2 is
  // uniform.
  double mean = 0;
  for (std::int64_t item = 0; item < 500; ++item) {
    std::vector<float> images(2 * 64 * 64);
    RandomStream stream(0, "test", 0, item);
    mean += mix_batch(images, 2, 1, 64, 64, {.cutmix = 1}, stream) / 500;
  }
  CHECK(mean == Approx(1 - (0.5 - 0.2 + 1.0 / 48)).margin(0.03));
  // In an odd batch the middle image is mixed with itself.
  std::vector<float> three{1, 2, 3};
  RandomStream stream(0, "test", 0, 1);
  mix_batch(three, 3, 1, 1, 1, {.mixup = 1}, stream);
  CHECK(three[1] == 2);
  CHECK(three[0] + three[2] == Approx(4));
}

TEST_CASE("A random stream has uniform and normal and gamma and beta draws with the right moments") {
  RandomStream stream(1, "test", 0, 0);
  double normal = 0, squares = 0, gamma = 0, beta = 0, low = 1, high = 0;
  const int n = 20000;
  std::vector<int> counts(5);
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform(), x = stream.normal();
    low = std::min(low, u), high = std::max(high, u);
    normal += x / n, squares += x * x / n;
    gamma += stream.gamma(0.3) / n, beta += stream.beta(0.8, 2.4) / n;
    ++counts[static_cast<std::size_t>(stream.below(5))];
  }
  CHECK((low >= 0 && low < 0.001 && high > 0.999 && high < 1));
  CHECK(normal == Approx(0).margin(0.03));
  CHECK(squares == Approx(1).margin(0.04));
  CHECK(gamma == Approx(0.3).margin(0.02));
  CHECK(beta == Approx(0.25).margin(0.01));
  for (const int c : counts) CHECK(c == Approx(n / 5).margin(5 * std::sqrt(n * 0.16)));
  RandomStream again(1, "test", 0, 0), next(1, "test", 0, 1);
  RandomStream first(1, "test", 0, 0);
  const double u = first.uniform();
  CHECK(again.uniform() == u);
  CHECK(next.uniform() != u);
}
