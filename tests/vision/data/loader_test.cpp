#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/augment.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "experiments/lab/train/trial.h"
#include "experiments/vision/data/batch.h"
#include "plumb/plumb.h"
#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// Images of 2 x 4 x 4 bytes. Image i has the label i, so a label identifies an image.
ImageSet numbered_set(std::int64_t count) {
  ImageSet set{2, 4, 4, count, some_pixels(static_cast<std::size_t>(count) * 32), {}};
  for (std::int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<std::int32_t>(i));
  return set;
}

const Normalization plain_2_channels{{0.0f, 0.0f}, {1.0f, 1.0f}};

bool equal(const HostBatch& a, const HostBatch& b) {
  return a.images == b.images && a.labels == b.labels && a.first == b.first && a.epoch == b.epoch;
}

}  // namespace

TEST_CASE("The order of an epoch is a permutation that depends on seed and epoch") {
  const std::vector<std::int64_t> order = epoch_order(1000, 5, 2);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == static_cast<std::int64_t>(i));
  CHECK(order != sorted);
  CHECK(order == epoch_order(1000, 5, 2));
  CHECK(order != epoch_order(1000, 5, 3));
  CHECK(order != epoch_order(1000, 6, 2));
  CHECK(epoch_order(1, 5, 2) == std::vector<std::int64_t>{0});
  CHECK(epoch_order(10, 0, 0) ==
        std::vector<std::int64_t>{5, 1, 9, 7, 0, 8, 6, 2, 4, 3});  // this order must not change between versions
}

TEST_CASE("Every sample has every position equally often") {
  std::array<std::array<int, 5>, 5> places{};
  for (std::uint32_t epoch = 0; epoch < 5000; ++epoch) {
    const std::vector<std::int64_t> order = epoch_order(5, 1, epoch);
    for (std::size_t i = 0; i < 5; ++i) ++places[i][static_cast<std::size_t>(order[i])];
  }
  for (const auto& row : places)
    for (const int count : row) CHECK(std::abs(count - 1000) < 142);  // 142 is five standard deviations
}

TEST_CASE("Training batches follow the order of the epoch and leave out its remainder") {
  const ImageSet set = numbered_set(11);
  BatchLoader loader(set, plain_2_channels, {.batch = 4, .seed = 9});
  for (std::int64_t step = 0; step < 9; ++step) {
    const HostBatch batch = loader.next();
    CHECK(batch.epoch == step / 2);
    CHECK(batch.first == step % 2 * 4);
    const std::vector<std::int64_t> order = epoch_order(11, 9, static_cast<std::uint32_t>(step / 2));
    CHECK(batch.labels == std::vector<std::int64_t>(order.begin() + batch.first, order.begin() + batch.first + 4));
    REQUIRE(batch.images.size() == 4 * 32);
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t i = 0; i < 32; ++i)
        REQUIRE(batch.images[b * 32 + i] == static_cast<float>(set.image(batch.labels[b])[i]) / 255.0f);
  }
}

TEST_CASE("A batch can be as large as the set but not larger") {
  const ImageSet set = numbered_set(6);
  BatchLoader loader(set, plain_2_channels, {.batch = 6});
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) CHECK(loader.next().epoch == epoch);
  CHECK_THAT(error_of([&] { BatchLoader(set, plain_2_channels, {.batch = 7}); }),
             contains("a batch of at most 6 images, the size of the training set, got 7"));
}

TEST_CASE("The options of a loader are checked") {
  const ImageSet set = numbered_set(6), empty{2, 4, 4, 10, {}, {}};
  CHECK_THAT(error_of([&] { BatchLoader(set, plain_2_channels, {.batch = 0}); }),
             contains("at least one image, got 0"));
  CHECK_THAT(error_of([&] { BatchLoader(set, plain_2_channels, {.batch = 2, .start_step = -1}); }), contains("got -1"));
  CHECK_THAT(error_of([&] { BatchLoader(set, plain_2_channels, {.batch = 2, .augment = {.crop_padding = 5}}); }),
             contains("0..4, got 5"));
  CHECK_THAT(error_of([&] { BatchLoader(set, {{0.5f}, {1.0f}}, {.batch = 2}); }), contains("2 channels, got 1 means"));
  CHECK_THAT(error_of([&] { BatchLoader(empty, plain_2_channels, {.batch = 2}); }), contains("empty set"));
}

TEST_CASE("A loader started at step k continues as after k steps") {
  const ImageSet set = numbered_set(23);
  const Augmentation augment{2, true};
  BatchLoader whole(set, plain_2_channels, {.batch = 5, .seed = 3, .augment = augment});
  for (std::int64_t step = 0; step < 14; ++step) {
    const HostBatch expected = whole.next();
    BatchLoader resumed(set, plain_2_channels, {.batch = 5, .seed = 3, .augment = augment, .start_step = step});
    CHECK(equal(resumed.next(), expected));
  }
}

TEST_CASE("Batches do not depend on the time between calls of next") {
  const ImageSet set = numbered_set(40);
  const LoaderOptions options{.batch = 7, .seed = 4, .augment = {1, true}};
  BatchLoader fast(set, plain_2_channels, options), slow(set, plain_2_channels, options);
  std::vector<HostBatch> at_once;
  for (int i = 0; i < 30; ++i) at_once.push_back(fast.next());
  for (int i = 0; i < 30; ++i) {
    if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(equal(slow.next(), at_once[static_cast<std::size_t>(i)]));
  }
}

TEST_CASE("Training images are augmented by seed and epoch and sample before they are normalised") {
  const ImageSet set = numbered_set(8);
  const Normalization normalization{{0.25f, 0.5f}, {0.5f, 2.0f}};
  const Augmentation augment{2, true};
  BatchLoader loader(set, normalization, {.batch = 8, .seed = 6, .augment = augment});
  int moved = 0;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const HostBatch batch = loader.next();
    for (std::size_t b = 0; b < 8; ++b) {
      const std::vector<std::uint8_t> pixels =
          placed(original(set, batch.labels[b]), draw_placement(augment, 6, epoch, batch.labels[b])).bytes;
      moved += !std::equal(pixels.begin(), pixels.end(), set.image(batch.labels[b]));
      for (std::size_t i = 0; i < 32; ++i) {
        const std::size_t c = i / 16;
        REQUIRE(batch.images[b * 32 + i] ==
                (static_cast<float>(pixels[i]) / 255.0f - normalization.mean[c]) / normalization.std[c]);
      }
    }
  }
  CHECK(moved > 12);
}

TEST_CASE("A set normalised by its statistics has mean 0 and deviation 1 in each channel") {
  const ImageSet set = numbered_set(50);
  const HostBatch batch = evaluation_batch(set, normalization_of(set), 0, 50);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < batch.images.size(); ++i)
      if (i / 16 % 2 == c) {
        sum += batch.images[i];
        squares += batch.images[i] * batch.images[i];
      }
    CHECK(sum / 800 == Approx(0).margin(1e-5));
    CHECK(squares / 800 == Approx(1).margin(1e-4));
  }
}

TEST_CASE("Evaluation batches are slices of the set in order") {
  const ImageSet set = numbered_set(10);
  const HostBatch batch = evaluation_batch(set, plain_2_channels, 3, 4);
  CHECK(batch.size() == 4);
  CHECK(batch.first == 3);
  CHECK(batch.labels == std::vector<std::int64_t>{3, 4, 5, 6});
  CHECK(batch.images[32] == static_cast<float>(set.image(4)[0]) / 255.0f);
  CHECK(evaluation_batch(set, plain_2_channels, 9, 1).labels[0] == 9);
  for (const auto& [first, count] :
       {std::pair<std::int64_t, std::int64_t>{0, 11}, {10, 1}, {-1, 2}, {3, 0}, {11, 1}, {5, INT64_MAX}})
    CHECK_THAT(error_of([&, f = first, n = count] { evaluation_batch(set, plain_2_channels, f, n); }),
               contains("in 0..9"));
}

TEST_CASE("A loader can be destroyed at any time") {
  const ImageSet set = numbered_set(300);
  for (int round = 0; round < 100; ++round) {
    BatchLoader loader(set, plain_2_channels, {.batch = 100, .seed = static_cast<std::uint64_t>(round)});
    for (int i = 0; i < round % 5; ++i) loader.next();
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
  }
}

TEST_CASE("Prefetch returns results in order and does not exceed its capacity") {
  std::atomic<int> made{0};
  Prefetch<int> ahead([&] { return made++; }, 3);
  for (int taken = 0; taken < 200; ++taken) {
    CHECK(made <= taken + 3);
    CHECK(ahead.next() == taken);
  }
  while (made < 203) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(made == 203);
}

TEST_CASE("An exception in the prefetching thread is rethrown by every call after the earlier results") {
  Prefetch<int> ahead(
      [n = 0]() mutable {
        if (n == 4) throw std::runtime_error("the disk is gone");
        return n++;
      },
      2);
  for (int i = 0; i < 4; ++i) CHECK(ahead.next() == i);
  for (int i = 0; i < 3; ++i) CHECK(error_of([&] { ahead.next(); }) == "the disk is gone");
}

TEST_CASE("A Prefetch whose exception is never read is destroyed without an error") {
  Prefetch<int> ahead([]() -> int { throw std::runtime_error("unseen"); }, 2);
}

TEST_CASE("Repeated images follow each other with different augmentation also across batches") {
  const ImageSet set = numbered_set(24);
  Augmentation augment{2, true};
  augment.repeats = 3;
  const std::vector<std::int64_t> order = epoch_order(24, 5, 0);
  BatchLoader loader(set, plain_2_channels, {.batch = 8, .seed = 5, .augment = augment});
  std::vector<std::int64_t> labels;
  std::vector<std::vector<float>> images;
  for (int step = 0; step < 3; ++step) {
    const HostBatch batch = loader.next();
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    for (std::int64_t i = 0; i < 8; ++i)
      images.emplace_back(batch.images.begin() + i * 32, batch.images.begin() + (i + 1) * 32);
  }
  int alike = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    CHECK(labels[i] == order[i / 3]);
    if (i % 3 > 0) alike += images[i] == images[i - 1];
  }
  CHECK(alike < 4);  // two images agree by chance, because there are only 50 placements
  // The first copy of an image equals the image without repeats.
  augment.repeats = 1;
  BatchLoader once(set, plain_2_channels, {.batch = 8, .seed = 5, .augment = augment});
  const HostBatch first = once.next();
  for (std::int64_t i = 0; i < 8; ++i)
    CHECK(std::equal(images[static_cast<std::size_t>(3 * i)].begin(), images[static_cast<std::size_t>(3 * i)].end(),
                     first.images.begin() + i * 32));
  augment.repeats = 9;
  CHECK_THAT(
      plumb::test::error_of([&] { BatchLoader(set, plain_2_channels, {.batch = 8, .augment = augment}).next(); }),
      contains("[loader] expected 1 to 8 repeats of an image, got 9"));
}

TEST_CASE(
    "A mixed batch has the images and labels and loss of the batch and of the reversed batch weighted by its share") {
  const ImageSet set = numbered_set(12);
  BatchLoader mixing(set, plain_2_channels, {.batch = 6, .seed = 2, .augment = {.mixup = 0.8}}),
      bare(set, plain_2_channels, {.batch = 6, .seed = 2});
  for (int step = 0; step < 4; ++step) {
    const HostBatch mixed = mixing.next(), own = bare.next();
    CHECK(mixed.labels == own.labels);
    REQUIRE((mixed.share > 0 && mixed.share < 1));
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t k = 0; k < 32; ++k)
        CHECK(mixed.images[i * 32 + k] ==
              Approx(mixed.share * own.images[i * 32 + k] + (1 - mixed.share) * own.images[(5 - i) * 32 + k])
                  .margin(1e-5));
    const Batch batch = to_tensors(mixed, set);
    std::vector<double> reversed(mixed.labels.rbegin(), mixed.labels.rend());
    CHECK(batch.others.values() == reversed);
    // The loss equals the cross-entropy with a soft target of both labels, which is smoothed as in timm.
    const plumb::Tensor logits = plumb::random_normal({6, 12}, 3, "logits");
    std::vector<double> target(6 * 12, 0.1 / 12);
    for (std::size_t i = 0; i < 6; ++i) {
      target[i * 12 + static_cast<std::size_t>(mixed.labels[i])] += 0.9 * mixed.share;
      target[i * 12 + static_cast<std::size_t>(mixed.labels[5 - i])] += 0.9 * (1 - mixed.share);
    }
    CHECK(plumb::vision::loss_of(logits, batch, 0.1).item() ==
          Approx(plumb::soft_cross_entropy(logits, plumb::tensor(target, {6, 12})).item()).epsilon(1e-5));
    // The entropy of these targets is the lowest loss, which the logarithms of the targets have.
    double entropy = 0;
    for (const double p : target) entropy -= p * std::log(p) / 6;
    CHECK(target_entropy(batch, 12, 0.1) == Approx(entropy).epsilon(1e-12));
  }
  // Labels that are equal are not mixed: only samples 0 and 3 of this batch have another label mixed in.
  HostBatch equal{.images = std::vector<float>(4 * 32), .labels = {1, 2, 2, 3}};
  equal.share = 0.5;
  CHECK(target_entropy(to_tensors(equal, set), 12) == Approx(0.5 * std::log(2)));
  equal.share = 1;
  CHECK(target_entropy(to_tensors(equal, set), 12) == 0);
  CHECK(target_entropy(to_tensors(equal, set), 2, 1) == Approx(std::log(2)));
  CHECK_FALSE(to_tensors(bare.next(), set).others.defined());
}

TEST_CASE("A loader with DeiT augmentation started at step k continues as after k steps") {
  const ImageSet set = numbered_set(23);
  ImageSet colour{3, 8, 8, 23, some_pixels(23 * 192), set.labels};
  const Normalization normalization{{0.1f, 0.2f, 0.3f}, {1.0f, 2.0f, 3.0f}};
  BatchLoader whole(colour, normalization, {.batch = 5, .seed = 3, .augment = deit_augmentation(8)});
  for (std::int64_t step = 0; step < 9; ++step) {
    const HostBatch expected = whole.next();
    BatchLoader resumed(colour, normalization,
                        {.batch = 5, .seed = 3, .augment = deit_augmentation(8), .start_step = step});
    const HostBatch found = resumed.next();
    CHECK(equal(found, expected));
    CHECK(found.share == expected.share);
  }
  CHECK(deit_augmentation(224).crop_scale == 0.08);
  CHECK(deit_augmentation(224).crop_padding == 0);
}
