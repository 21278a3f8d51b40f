#include "core/drop_key.h"

#include <cmath>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Turns "0110 1000" into bytes; spaces separate the rows of a grid.
Bytes bytes(const std::string& text) {
  Bytes b;
  for (char c : text)
    if (c != ' ') b.push_back(c == '1');
  return b;
}

Bytes row_of(const KeyMask& drop, std::int64_t keys, std::int64_t sample, std::int64_t head, std::int64_t query) {
  Bytes row(static_cast<std::size_t>(keys), 7);
  drop_keys(drop, 7, sample, 3, head, query, row);
  return row;
}

constexpr std::uint64_t key = 0x0123456789abcdefull;

}  // namespace

TEST_CASE("seeds drop squares that fit, or full rows and columns") {
  const Bytes seeds = bytes("001001 100101 010000 000000 000000");
  CHECK(dropped_by_seeds(DropShape::block, 5, 6, 3, seeds) == bytes("001110 111110 111110 111000 000000"));
  CHECK(dropped_by_seeds(DropShape::cross, 5, 6, 3, seeds) == Bytes(30, 1));
  CHECK(dropped_by_seeds(DropShape::plain, 5, 6, 3, seeds) == seeds);
  const Bytes one = bytes("0000 0000 0010 0000");
  CHECK(dropped_by_seeds(DropShape::block, 4, 4, 1, one) == one);
  CHECK(dropped_by_seeds(DropShape::cross, 4, 4, 1, one) == bytes("0010 0010 1111 0010"));
  CHECK(dropped_by_seeds(DropShape::cross, 3, 5, 3, bytes("00000 00000 00001")) == bytes("00011 11111 11111"));
  CHECK_THAT(error_of([&] { dropped_by_seeds(DropShape::block, 5, 5, 3, seeds); }),
             contains("[drop_key] expected 5 x 5 seeds, got 30"));
  CHECK_THAT(error_of([&] { dropped_by_seeds(DropShape::block, 5, 6, 2, seeds); }),
             contains("expected an odd window, got 2"));
}

TEST_CASE("plain DropKey draws the same numbers as in earlier versions") {
  const KeyMask drop = key_mask(0.3, DropShape::plain, 0, DropSharing::per_entry, {}, 20, key);
  CHECK(row_of(drop, 20, 5, 2, 4) == bytes("00011000100011010000"));  // computed with a Philox in another language
}

TEST_CASE("a shared mask is the mask of head 0 or of query 0") {
  for (const DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross}) {
    const auto row = [&](DropSharing sharing, std::int64_t sample, std::int64_t head, std::int64_t query) {
      return row_of(key_mask(0.5, shape, 0, sharing, {7, 9}, 65, key), 65, sample, head, query);
    };
    using enum DropSharing;
    CHECK(row(heads, 1, 2, 3) == row(per_entry, 1, 0, 3));
    CHECK(row(column, 1, 2, 3) == row(per_entry, 1, 2, 0));
    CHECK(row(heads, 1, 2, 3) != row(heads, 1, 2, 4));
    CHECK(row(heads, 1, 2, 3) != row(heads, 2, 2, 3));
    CHECK(row(column, 1, 2, 3) != row(column, 1, 1, 3));
    CHECK(row(per_entry, 1, 2, 3) != row(per_entry, 1, 1, 3));
  }
}

TEST_CASE("the shapes block and cross draw seeds on the grid and never drop other keys") {
  const KeyGrid grid{6, 7};
  const std::int64_t keys = 45;  // three keys are not on the grid
  for (const DropShape shape : {DropShape::block, DropShape::cross})
    for (double rate : {0.1, 0.6, 1.0}) {
      const KeyMask drop = key_mask(rate, shape, 3, DropSharing::per_entry, grid, keys, key);
      const double centres = shape == DropShape::block ? 9 : 3 * 13 - 9;
      CHECK(drop.threshold == drop_threshold(1 - std::pow(1 - rate, 1 / centres)));
      const Bytes row = row_of(drop, keys, 1, 1, 9);
      const Bytes seeds = row_of({.threshold = drop.threshold, .random_key = key}, keys, 1, 1, 9);
      CHECK(std::vector(row.begin() + 3, row.end()) == dropped_by_seeds(shape, 6, 7, 3, std::span(seeds).subspan(3)));
      CHECK(std::vector(row.begin(), row.begin() + 3) == Bytes(3, 0));
      if (rate == 1) CHECK(std::vector(row.begin() + 3, row.end()) == Bytes(42, 1));
    }
  CHECK(drop_seed_rate(DropShape::cross, 0.3, {14, 14}, 1) == Approx(1 - std::pow(0.7, 1.0 / 27)));
  CHECK(drop_seed_rate(DropShape::cross, 0.3, {14, 14}, 1) == Approx(0.0131).epsilon(0.01));
  CHECK(key_mask(0.3, DropShape::block, 0, DropSharing::per_entry, grid, keys, key).window == 3);
  CHECK(key_mask(0.3, DropShape::cross, 0, DropSharing::per_entry, grid, keys, key).window == 1);
}

TEST_CASE("DropKey refuses invalid rates, grids and windows") {
  const auto make = [](double rate, DropShape shape, std::int64_t window, KeyGrid grid, std::int64_t keys) {
    return error_of([&] { key_mask(rate, shape, window, DropSharing::per_entry, grid, keys, 1); });
  };
  using enum DropShape;
  CHECK_THAT(make(1.5, plain, 0, {}, 9), contains("[drop_key] expected a probability in [0, 1], got 1.5"));
  CHECK_THAT(make(std::nan(""), plain, 0, {}, 9), contains("expected a probability in [0, 1], got nan"));
  CHECK_THAT(make(0.1, block, 0, {}, 9),
             contains("expected the grid of patches that the shape block drops on, got 0 x 0: set height and width"));
  CHECK_THAT(make(0.1, cross, 0, {3, 4}, 11), contains("expected a grid of at most 11 keys, got 3 x 4 patches"));
  CHECK_THAT(make(0.1, block, 2, {3, 4}, 12),
             contains("expected an odd window that fits into the grid of 3 x 4 patches, got 2"));
  CHECK_THAT(make(0.1, block, 0, {2, 6}, 12), contains("fits into the grid of 2 x 6 patches, got 3"));
  CHECK_THAT(make(0.1, cross, 1, {65536, 1}, 1 << 17),
             contains("[drop_key] expected sides of the grid below 65536, got 65536 x 1"));
  CHECK_THAT(make(0.1, block, 1, {std::int64_t{1} << 32, std::int64_t{1} << 32}, 9),
             contains("below 65536"));  // the product of the sides is 2^64
  CHECK_THAT(error_of([] { dropped_by_seeds(cross, std::int64_t{1} << 32, std::int64_t{1} << 32, 1, {}); }),
             contains("below 65536"));
  CHECK_THAT(make(0.1, cross, -1, {2, 6}, 12), contains("got -1"));
  CHECK(key_mask(0, block, 0, DropSharing::per_entry, {}, 9, 1).threshold == 0);
}
