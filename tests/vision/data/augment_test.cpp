#include "experiments/vision/data/augment.h"

#include <map>

#include "core/random.h"
#include "tests/vision/data/data_files.h"

using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

std::vector<std::uint8_t> placed(const ImageSet& set, std::int64_t index, const Placement& placement) {
  return placed(original(set, index), placement).bytes;
}

}  // namespace

TEST_CASE("An image is mirrored and shifted and its uncovered border is filled with zeros") {
  const ImageSet set{1, 2, 3, 10, {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6}, {0, 1}};
  using Image = std::vector<std::uint8_t>;
  CHECK(placed(set, 1, {0, 0, false}) == Image{1, 2, 3, 4, 5, 6});
  CHECK(placed(set, 1, {0, 0, true}) == Image{3, 2, 1, 6, 5, 4});
  CHECK(placed(set, 1, {0, 1, false}) == Image{2, 3, 0, 5, 6, 0});
  CHECK(placed(set, 1, {0, -1, false}) == Image{0, 1, 2, 0, 4, 5});
  CHECK(placed(set, 1, {1, 0, false}) == Image{4, 5, 6, 0, 0, 0});
  CHECK(placed(set, 1, {-1, 0, false}) == Image{0, 0, 0, 1, 2, 3});
  CHECK(placed(set, 1, {0, 1, true}) == Image{2, 1, 0, 5, 4, 0});
  CHECK(placed(set, 1, {-1, -2, true}) == Image{0, 0, 0, 0, 0, 3});
  CHECK(placed(set, 1, {2, 0, false}) == Image(6, 0));
  CHECK(placed(set, 1, {0, 3, false}) == Image(6, 0));
  CHECK(placed(set, 1, {0, -7, true}) == Image(6, 0));
}

TEST_CASE("All channels have the same placement") {
  const ImageSet set{2, 1, 3, 10, {1, 2, 3, 4, 5, 6}, {0}};
  CHECK(placed(set, 0, {0, 1, true}) == std::vector<std::uint8_t>{2, 1, 0, 5, 4, 0});
}

TEST_CASE("Placements use the documented layout of random draws") {
  const Augmentation augmentation{4, true};
  for (const std::int64_t sample : {std::int64_t{0}, std::int64_t{7}, (std::int64_t{1} << 32) + 5}) {
    const plumb::Draw draw =
        plumb::philox({3, static_cast<std::uint32_t>(plumb::Purpose::augmentation),
                       static_cast<std::uint32_t>(sample >> 32), static_cast<std::uint32_t>(sample)},
                      plumb::random_key(11, "data.augment"));
    const Placement p = draw_placement(augmentation, 11, 3, sample);
    CHECK(p.shift_y == std::int64_t{draw[0] & 0xFFFF} * 9 / 65536 - 4);
    CHECK(p.shift_x == std::int64_t{draw[0] >> 16} * 9 / 65536 - 4);
    CHECK(p.flip == ((draw[1] & 0xFFFF) < 0x8000));
  }
}

TEST_CASE("Placements have all shifts equally often and mirror half of the images") {
  std::map<std::int64_t, int> rows, columns;
  int flips = 0;
  constexpr int samples = 9000;
  for (std::int64_t i = 0; i < samples; ++i) {
    const Placement p = draw_placement({4, true}, 1, 0, i);
    ++rows[p.shift_y];
    ++columns[p.shift_x];
    flips += p.flip;
  }
  REQUIRE(rows.size() == 9);
  REQUIRE(columns.size() == 9);
  CHECK(rows.begin()->first == -4);
  CHECK(rows.rbegin()->first == 4);
  for (const auto& [shift, count] : rows) CHECK(std::abs(count - 1000) < 150);  // 150 is five standard deviations
  for (const auto& [shift, count] : columns) CHECK(std::abs(count - 1000) < 150);
  CHECK(std::abs(flips - samples / 2) < 240);
}

TEST_CASE("Placements depend on seed and epoch and sample and do nothing that is off") {
  const auto same = [](const Placement& a, const Placement& b) {
    return a.shift_y == b.shift_y && a.shift_x == b.shift_x && a.flip == b.flip;
  };
  const Augmentation wide{16, true};
  int seeds = 0, epochs = 0, samples = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Placement p = draw_placement(wide, 1, 1, i);
    seeds += same(p, draw_placement(wide, 2, 1, i));
    epochs += same(p, draw_placement(wide, 1, 2, i));
    samples += same(p, draw_placement(wide, 1, 1, i + 1));
    CHECK(draw_placement({0, true}, 1, 1, i).shift_x == 0);
    CHECK_FALSE(draw_placement({16, false}, 1, 1, i).flip);
    CHECK(draw_placement({16, false}, 1, 1, i).shift_x == p.shift_x);
  }
  CHECK(seeds < 5);
  CHECK(epochs < 5);
  CHECK(samples < 5);
}
