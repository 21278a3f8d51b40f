// Tests of searches for edges on an axis, without any training.
#include "experiments/lab/study/edge_search.h"

#include <cmath>
#include <deque>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;

namespace {

using Edges = EdgeSearch::Edges;

// A search over depths that starts at 12. The search goes up by at most `highest` ticks, and down by at most one octave
// (4 ticks).
EdgeSearch of_depths(int highest) {
  constexpr Octaves depths{12, 4};
  return {.axis = "depth",
          .octaves = depths,
          .lowest = -4,
          .highest = highest,
          .edges = Edges::upper,
          .value = [=](int tick) { return static_cast<std::int64_t>(std::lround(depths.at(tick))); },
          .look = [](const std::map<int, Share>& known) -> std::optional<int> {
            return known.contains(-4) ? std::nullopt : std::optional(-4);
          }};
}

EdgeSearch of_rates() {
  constexpr Octaves rates{1, 2};
  return {.axis = "lr",
          .octaves = rates,
          .lowest = -3,
          .highest = 6,
          .edges = Edges::both,
          .value = [=](int tick) { return rates.at(tick); },
          .look = [](const std::map<int, Share>& known) -> std::optional<int> {
            return known.contains(4) ? std::nullopt : std::optional(4);
          }};
}

// The values that a search names in each round until the search ends. `trains` returns the number of seeds, of three,
// that train at a value.
std::vector<std::vector<double>> rounds(const EdgeSearch& settings, const std::function<int(double value)>& trains) {
  const NextPoints next = edge_search([&] { return settings; });
  std::deque<Record> ended;
  std::vector<std::vector<double>> named;
  while (true) {
    Search search;
    for (const Record& r : ended) search.so_far.push_back(&r);
    const std::vector<Point> points = next(search);
    CHECK(next(search) == points);  // the result depends only on the search
    if (points.empty()) return named;
    named.emplace_back();
    for (const Point& point : points) {
      REQUIRE(point.entries().size() == 1);
      const auto value = point.get<double>(settings.axis);
      named.back().push_back(value);
      for (std::int64_t seed = 0; seed < 3; ++seed) {
        Record& r = ended.emplace_back(
            Record{.point = point, .status = Status::ok, .values = {{"trained", seed < trains(value) ? 1 : 0}}});
        r.point.set("seed", seed);
      }
    }
    REQUIRE(named.size() < 20);
  }
}

using Rounds = std::vector<std::vector<double>>;

}  // namespace

TEST_CASE("a search for the upper edge doubles the value until most seeds fail and then bisects") {
  // Doubling gives 12, 24, 48; bisection between 24 and 48 gives 34, then 40.
  CHECK(rounds(of_depths(16), [](double depth) { return depth < 38 ? 3 : 1; }) == Rounds{{12}, {24}, {48}, {34}, {40}});
  CHECK(rounds(of_depths(6), [](double) { return 2; }) ==
        Rounds{{12}, {24}, {34}});  // the search does not go beyond the highest tick
}

TEST_CASE("a search looks elsewhere until most seeds train at a tick and then finds the edge") {
  CHECK(rounds(of_depths(16), [](double depth) { return depth < 9 ? 3 : 0; }) == Rounds{{12}, {6}, {8}, {10}});
  CHECK(rounds(of_depths(16), [](double) { return 1; }) == Rounds{{12}, {6}});
  // Seeds train between ticks 2 and 6. Tick 0 already bounds the region from below.
  CHECK(rounds(of_rates(), [](double rate) { return rate > 2.5 && rate < 7 ? 3 : 0; }) ==
        Rounds{{1}, {4}, {8, 2}, {std::exp2(2.5), std::exp2(1.5)}});
}

TEST_CASE("a search for both edges goes outwards on both sides up to its bounds") {
  const auto tick = [](double t) { return std::exp2(t / 2); };
  CHECK(rounds(of_rates(), [](double) { return 3; }) ==
        Rounds{{1}, {tick(2), tick(-2)}, {tick(4), tick(-3)}, {tick(6)}});
  CHECK(rounds(of_rates(), [](double rate) { return rate < 1.9 && rate > 0.4 ? 3 : 1; }) ==
        Rounds{{1}, {tick(2), tick(-2)}, {tick(1), tick(-3)}});
}
