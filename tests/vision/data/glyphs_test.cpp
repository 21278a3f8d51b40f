#include "experiments/vision/data/glyphs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <string>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

std::uint64_t fingerprint(const std::uint8_t* bytes, std::int64_t count) {
  return plumb::random_key(0, std::string(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count)));
}

struct Features {
  std::size_t count;          // number of features of a sample
  std::vector<float> values;  // features [N, count]
  std::vector<std::int32_t> labels;

  std::size_t size() const { return labels.size(); }
};

// The pixels as features, for a linear model on the image.
Features pixel_features(const ImageSet& set) {
  Features f{static_cast<std::size_t>(set.image_bytes()), {}, set.labels};
  for (const std::uint8_t pixel : set.pixels) f.values.push_back((static_cast<float>(pixel) - 128.0f) / 64.0f);
  return f;
}

// Features for a linear model: the amplitudes of the orientations and of three wave lengths, summed over patches of
// 8 x 8 pixels. An amplitude is a nonlinear function of linear features of the patches.
Features amplitudes_of(const ImageSet& set, int orientations) {
  Features f{3 * static_cast<std::size_t>(orientations), {}, set.labels};
  for (std::int64_t n = 0; n < set.size(); ++n) {
    const std::uint8_t* p = set.image(n);
    for (int orientation = 0; orientation < orientations; ++orientation)
      for (const double wave : {4.6, 5.7, 7.2}) {
        const double angle = orientation * std::numbers::pi / orientations,
                     kx = 2 * std::numbers::pi * std::cos(angle) / wave,
                     ky = 2 * std::numbers::pi * std::sin(angle) / wave;
        double sum = 0;
        for (int patch = 0; patch < 16; ++patch) {
          double mean = 0, re = 0, im = 0, re1 = 0, im1 = 0;
          for (int y = patch / 4 * 8; y < patch / 4 * 8 + 8; ++y)
            for (int x = patch % 4 * 8; x < patch % 4 * 8 + 8; ++x) {
              const double grey = p[y * 32 + x] + p[1024 + y * 32 + x] + p[2048 + y * 32 + x],
                           c = std::cos(kx * x + ky * y), s = std::sin(kx * x + ky * y);
              mean += grey / 64;
              re += grey * c;
              im += grey * s;
              re1 += c;
              im1 += s;
            }
          sum += std::hypot(re - mean * re1, im - mean * im1);
        }
        f.values.push_back(static_cast<float>(sum / 30'000));
      }
  }
  return f;
}

// Trains softmax regression on `train` by gradient descent with batches of 50. Returns the accuracy on `test`.
double softmax_accuracy(const Features& train, const Features& test, std::size_t classes, int epochs, float rate) {
  const std::size_t d = train.count;
  std::vector<float> w(classes * (d + 1), 0.0f);
  const auto scores = [&](const float* x) {
    std::vector<float> z(classes);
    for (std::size_t k = 0; k < classes; ++k) {
      const float* row = w.data() + k * (d + 1);
      for (std::size_t i = 0; i < d; ++i) z[k] += row[i] * x[i];
      z[k] += row[d];
    }
    return z;
  };
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (std::size_t begin = 0; begin + 50 <= train.size(); begin += 50) {
      std::vector<std::vector<float>> slopes(50, std::vector<float>(classes));
      for (std::size_t b = 0; b < 50; ++b) {
        std::vector<float> z = scores(&train.values[(begin + b) * d]);
        const float top = *std::max_element(z.begin(), z.end());
        float sum = 0;
        for (float& v : z) sum += v = std::exp(v - top);
        for (std::size_t k = 0; k < classes; ++k)
          slopes[b][k] = z[k] / sum - (static_cast<std::size_t>(train.labels[begin + b]) == k);
      }
      for (std::size_t b = 0; b < 50; ++b)
        for (std::size_t k = 0; k < classes; ++k) {
          float* row = w.data() + k * (d + 1);
          const float step = rate * slopes[b][k] / 50;
          const float* x = &train.values[(begin + b) * d];
          for (std::size_t i = 0; i < d; ++i) row[i] -= step * x[i];
          row[d] -= step;
        }
    }
  int right = 0;
  for (std::size_t n = 0; n < test.size(); ++n) {
    const std::vector<float> z = scores(&test.values[n * d]);
    right += std::max_element(z.begin(), z.end()) - z.begin() == test.labels[n];
  }
  return right / static_cast<double>(test.size());
}

}  // namespace

TEST_CASE("Glyphs have the same bytes on every machine") {
  const auto first = [](GlyphSplit split, GlyphKind kind) {
    const ImageSet set = make_glyphs(split, 1, kind);
    return fingerprint(set.image(0), set.image_bytes());
  };
  CHECK(first(GlyphSplit::train, GlyphKind::plain) == 0x5601fcb86be4b454ull);
  CHECK(first(GlyphSplit::validation, GlyphKind::plain) == 0x70684a28a51a150cull);
  CHECK(first(GlyphSplit::train, GlyphKind::cluttered) == 0x8a10732a471ecb43ull);
  CHECK(first(GlyphSplit::validation, GlyphKind::cluttered) == 0xab66093d40424412ull);
}

TEST_CASE("A glyph depends only on its kind, split and index") {
  for (const GlyphKind kind : {GlyphKind::plain, GlyphKind::cluttered}) {
    const ImageSet few = make_glyphs(GlyphSplit::train, 23, kind), many = make_glyphs(GlyphSplit::train, 101, kind);
    CHECK(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
    CHECK(std::equal(few.labels.begin(), few.labels.end(), many.labels.begin()));
  }
}

TEST_CASE("Any number of glyphs can be made and their labels are balanced") {
  for (const GlyphKind kind : {GlyphKind::plain, GlyphKind::cluttered}) {
    for (const std::int64_t count : {0, 1, 7, 64, 1001}) {
      const ImageSet set = make_glyphs(GlyphSplit::validation, count, kind);
      CHECK(set.size() == count);
      CHECK(set.pixels.size() == static_cast<std::size_t>(count) * 3072);
      if (count > 0) CHECK_NOTHROW(check_consistent(set, "test"));
    }
    const std::int64_t classes = kind == GlyphKind::plain ? 10 : 28;
    const ImageSet set = make_glyphs(GlyphSplit::train, 5 * classes, kind);
    CHECK(set.classes == classes);
    for (std::int32_t label = 0; label < classes; ++label)
      CHECK(std::count(set.labels.begin(), set.labels.end(), label) == 5);
  }
  CHECK_THAT(error_of([] { make_glyphs(GlyphSplit::train, -1); }), contains("got -1"));
}

TEST_CASE("No two glyphs are equal within a split, across splits or across kinds") {
  std::set<std::uint64_t> seen;
  for (const GlyphKind kind : {GlyphKind::plain, GlyphKind::cluttered})
    for (const GlyphSplit split : {GlyphSplit::train, GlyphSplit::validation}) {
      const ImageSet set = make_glyphs(split, 500, kind);
      for (std::int64_t i = 0; i < set.size(); ++i) seen.insert(fingerprint(set.image(i), set.image_bytes()));
    }
  CHECK(seen.size() == 2000);
}

TEST_CASE("Glyphs use the whole range of a byte and few values are clipped") {
  for (const GlyphKind kind : {GlyphKind::plain, GlyphKind::cluttered}) {
    const ImageSet set = make_glyphs(GlyphSplit::train, 200, kind);
    const auto clipped =
        std::count_if(set.pixels.begin(), set.pixels.end(), [](std::uint8_t p) { return p == 0 || p == 255; });
    CHECK(static_cast<double>(clipped) < 0.05 * static_cast<double>(set.pixels.size()));
    const Normalization n = normalization_of(set);
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(n.mean[c] == Approx(0.5).margin(0.03));
      CHECK(n.std[c] > 0.15f);
    }
  }
}

TEST_CASE("A linear model classifies some glyphs and amplitudes of oriented waves classify almost all") {
  const ImageSet train = make_glyphs(GlyphSplit::train, 2500), validation = make_glyphs(GlyphSplit::validation, 2000);
  const double linear = softmax_accuracy(pixel_features(train), pixel_features(validation), 10, 3, 0.001f);
  INFO(linear);
  CHECK(linear > 0.35);
  CHECK(linear < 0.55);
  CHECK(softmax_accuracy(amplitudes_of(train, 5), amplitudes_of(validation, 5), 10, 60, 1.0f) > 0.95);
}

TEST_CASE("A linear model stays near chance on cluttered glyphs and amplitudes classify two thirds") {
  const ImageSet train = make_glyphs(GlyphSplit::train, 1120, GlyphKind::cluttered),
                 validation = make_glyphs(GlyphSplit::validation, 560, GlyphKind::cluttered);
  const double linear = softmax_accuracy(pixel_features(train), pixel_features(validation), 28, 3, 0.001f),
               amplitudes = softmax_accuracy(amplitudes_of(train, 8), amplitudes_of(validation, 8), 28, 60, 1.0f);
  INFO(linear << " " << amplitudes);
  CHECK(linear < 0.12);  // chance is 0.036
  CHECK(amplitudes > 0.5);
  CHECK(amplitudes < 0.85);
}

TEST_CASE("Glyphs-few has the first training images and all validation images of glyphs-clutter") {
  const ImageData few = glyphs_few(), clutter = glyphs_clutter();
  CHECK(few.name == "glyphs-few");
  CHECK(clutter.name == "glyphs-clutter");
  CHECK((few.train.size() == 1'008 && clutter.train.size() == 25'200));
  CHECK((few.validation.size() == 2'800 && clutter.validation.size() == 2'800));
  CHECK(std::equal(few.train.pixels.begin(), few.train.pixels.end(), clutter.train.pixels.begin()));
  CHECK((few.validation.pixels == clutter.validation.pixels));
}
