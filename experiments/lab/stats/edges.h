// Edges along a geometric grid at which trainings begin or cease to work, for studies that find them by bisection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// A geometric grid: the number at a tick is start 2^(tick / ticks).
struct Octaves {
  double start;
  int ticks;  // in an octave, that is, a factor of 2
  double at(double tick) const;
  int tick_of(double x) const;  // the nearest tick
  // The lowest tick t <= 0 such that the numbers at t, t + 1, .., 0, rounded to integers, are all different, each has
  // its tick as its nearest tick, and the number at t is at least `least` before rounding.
  int lowest_whole(double least) const;
};

// The share of seeds that trained, and its 95 % interval (Wilson 1927).
struct Share {
  std::int64_t trained = 0, seeds = 0;
  double value() const { return static_cast<double>(trained) / static_cast<double>(seeds); }
  bool most() const { return 2 * trained > seeds; }  // whether more than half of the seeds trained
  double low() const;
  double high() const;
};
// The share as text: "2/3".
std::string to_string(const Share& share);

// The share of seeds that trained, by the tick nearest to the number on `axis`. A trial trained if it ended ok and
// measured a value "trained" above 0. Failed trials do not count. Throws Error if a trial has no number on the axis.
std::map<int, Share> shares(const std::vector<const Record*>& trials, const std::string& axis, const Octaves& octaves);
std::map<int, Share> shares(const std::vector<const TrialResult*>& trials, const std::string& axis,
                            const Octaves& octaves);

// An edge, seen from a tick at which most seeds train.
struct Edge {
  int inside;                       // the last tick at which most seeds train
  std::optional<int> outside = {};  // the first known tick at which they do not; empty if there is none yet
  double middle() const { return 0.5 * (inside + outside.value_or(inside)); }  // half way between the two, in ticks
};
// The edge above (below) the tick `from`. Empty if `from` is unknown, or if most seeds do not train there.
std::optional<Edge> edge_above(const std::map<int, Share>& known, int from);
std::optional<Edge> edge_below(const std::map<int, Share>& known, int from);
// The tick nearest to 0 at which most seeds train. Empty if there is none.
std::optional<int> foothold(const std::map<int, Share>& known);
// The width of the region around the foothold in which most seeds train, from the middle of one edge to the middle of
// the other.
struct Width {
  double octaves = 0;  // 0 without a foothold
  bool open = false;   // an edge is not known yet, so the region is at least this wide
};
Width width_of(const std::map<int, Share>& known, const Octaves& octaves);
// The next tick to try in the search for the edge above (below) `from`: an octave further, but not beyond `last`, until
// a tick is outside the edge, then half way. Empty if the edge is found or lies beyond `last`, or if most seeds do not
// train at `from`.
std::optional<int> next_above(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);
std::optional<int> next_below(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);

}  // namespace plumb::lab
