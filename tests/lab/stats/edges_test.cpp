#include "experiments/lab/stats/edges.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;

namespace {

// Calls next_above() from tick 0 until the search ends. Each seed trains at ticks below its edge. Returns the number of
// ticks that were tried.
int trace(const std::vector<double>& edges, const Octaves& octaves, int last, std::map<int, Share>& known) {
  int asked = 0;
  for (std::optional<int> tick = 0; tick; tick = next_above(known, 0, octaves, last)) {
    REQUIRE_FALSE(known.contains(*tick));
    Share& share = known[*tick];
    for (const double edge : edges) ++share.seeds, share.trained += octaves.at(*tick) < edge;
    REQUIRE(++asked < 40);
  }
  return asked;
}

}  // namespace

TEST_CASE("the grid has a factor of two per octave") {
  const Octaves octaves{12, 4};
  CHECK(octaves.at(0) == 12);
  CHECK(octaves.at(4) == 24);
  CHECK(octaves.at(-8) == 3);
  // Depths are integers. From the lowest tick upwards, all ticks have different depths.
  for (int first = 4; first <= 200; ++first) {
    const Octaves depths{static_cast<double>(first), 4};
    INFO(first);
    const int lowest = depths.lowest_whole(4);
    CHECK((lowest <= 0 && depths.at(lowest) >= 4));
    for (int tick = lowest; tick < 40; ++tick) {
      CHECK(depths.tick_of(std::round(depths.at(tick))) == tick);
      CHECK(std::round(depths.at(tick)) < std::round(depths.at(tick + 1)));
    }
  }
}

TEST_CASE("the search finds in few steps the edge at which most seeds cease to train") {
  const Octaves octaves{12, 4};
  for (const double edge : {13.0, 30.0, 47.0, 100.0, 150.0}) {
    std::map<int, Share> known;
    const int asked = trace({edge, edge * 1.01, edge / 4, edge * 2}, octaves, 16, known);
    const std::optional<Edge> found = edge_above(known, 0);
    REQUIRE(found);
    REQUIRE(found->outside);
    CHECK(*found->outside == found->inside + 1);
    CHECK(octaves.at(found->inside) < edge * 1.01);
    CHECK(octaves.at(*found->outside) >= edge);
    CHECK(asked <= 8);
  }
  // If the edge lies beyond the last tick, the search ends and the edge stays unknown.
  std::map<int, Share> known;
  CHECK(trace({1e9}, octaves, 14, known) == 5);  // tries the ticks 0, 4, 8, 12, 14
  CHECK(edge_above(known, 0)->inside == 14);
  CHECK_FALSE(edge_above(known, 0)->outside);
}

TEST_CASE("the lower edge mirrors the upper one and there is no edge from a tick at which most seeds fail") {
  const Octaves octaves{1e-3, 2};
  std::map<int, Share> known{{0, {3, 3}}, {2, {0, 3}}, {-2, {3, 3}}, {-4, {1, 3}}};
  CHECK(edge_above(known, 0)->inside == 0);
  CHECK(*edge_above(known, 0)->outside == 2);
  CHECK(edge_below(known, 0)->inside == -2);
  CHECK(*edge_below(known, 0)->outside == -4);
  CHECK(*next_above(known, 0, octaves, 14) == 1);
  CHECK(*next_below(known, 0, octaves, -14) == -3);
  CHECK_FALSE(edge_above(known, 2));
  CHECK_FALSE(edge_above(known, 7));
  CHECK_FALSE(next_above(known, 2, octaves, 14));
}

TEST_CASE("shares count trials that trained, with Wilson's interval, and leave out failed trials") {
  const auto trial = [](std::int64_t depth, std::int64_t seed, Status status, double trained) {
    return Record{.point = {{"depth", depth}, {"seed", seed}}, .status = status, .values = {{"trained", trained}}};
  };
  const std::vector<Record> trials{trial(12, 0, Status::ok, 1),       trial(12, 1, Status::ok, 0),
                                   trial(24, 0, Status::ok, 1),       trial(24, 1, Status::diverged, 1),
                                   trial(24, 2, Status::hopeless, 1), trial(24, 3, Status::ok, 1),
                                   trial(24, 4, Status::failed, 1),   trial(48, 0, Status::failed, 0)};
  std::vector<const Record*> pointers;
  for (const Record& r : trials) pointers.push_back(&r);
  const std::map<int, Share> found = shares(pointers, "depth", {12, 4});
  REQUIRE(found.size() == 2);
  CHECK(to_string(found.at(0)) == "1/2");
  CHECK(to_string(found.at(4)) == "2/4");
  CHECK_FALSE(found.at(4).most());  // most() means more than half
  CHECK(Share{2, 3}.most());
  CHECK_FALSE(Share{1, 3}.most());
  CHECK(Share{2, 4}.low() == Approx(0.1500).margin(1e-4));  // computed by hand from Wilson 1927
  CHECK(Share{2, 4}.high() == Approx(0.8500).margin(1e-4));
  CHECK(Share{3, 3}.high() == 1);
  CHECK(Share{3, 3}.low() == Approx(0.4385).margin(1e-4));
  const std::vector<const Record*> none;
  CHECK(shares(none, "depth", {12, 4}).empty());
}

TEST_CASE("a region reaches from the middle of the lower edge to the middle of the upper edge around the foothold") {
  const Share trains{3, 3}, fails{0, 3}, most{2, 3}, few{1, 3};
  const Octaves rates{1e-3, 2};
  CHECK_FALSE(foothold({{0, fails}, {4, few}}).has_value());
  CHECK(foothold({{0, fails}, {-4, trains}, {8, trains}}) == -4);
  CHECK(region_of({{0, fails}}, rates).octaves == 0);
  const Region closed = region_of({{-3, fails}, {-2, most}, {0, trains}, {2, trains}, {3, few}}, rates);
  CHECK((closed.octaves == 2.5 && !closed.open));  // from tick -2.5 to tick 2.5, with two ticks per octave
  const Region open = region_of({{-3, fails}, {-2, trains}, {0, trains}, {4, trains}}, rates);
  CHECK((open.octaves == 3.25 && open.open));  // from tick -2.5 to tick 4, the last tick that was tried
  // A region beyond a gap does not count.
  CHECK(region_of({{0, trains}, {1, fails}, {2, trains}, {-1, fails}}, rates).octaves == 0.5);
}
