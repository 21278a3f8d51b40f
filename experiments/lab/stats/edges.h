// Edges on a geometric grid at which trainings begin or cease to work. Studies find these edges by bisection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// A geometric grid. The number at a tick is start * 2^(tick / ticks).
struct Octaves {
  double start;
  int ticks;  // number of ticks per octave (a factor of 2)
  double at(double tick) const;
  int tick_of(double x) const;  // the tick nearest to `x`
  // The lowest tick t <= 0 that fulfils three conditions. The numbers at t, t + 1, .., 0, rounded to integers, are all
  // different. Each rounded number is nearest to its own tick. The number at t is at least `least` before rounding.
  int lowest_whole(double least) const;
};

// The share of seeds that trained. low() and high() are the ends of its 95 % interval (Wilson 1927).
struct Share {
  std::int64_t trained = 0, seeds = 0;
  double value() const { return static_cast<double>(trained) / static_cast<double>(seeds); }
  bool most() const { return 2 * trained > seeds; }  // whether more than half of the seeds trained
  double low() const;
  double high() const;
};
// The share as text: "2/3".
std::string to_string(const Share& share);

// For each tick, the share of seeds that trained. A trial counts at the tick nearest to its number on `axis`. A trial
// trained if it ended ok and measured a value "trained" above 0. Failed trials do not count. Throws Error if a trial
// has no number on the axis.
std::map<int, Share> shares(const std::vector<const Record*>& trials, const std::string& axis, const Octaves& octaves);
std::map<int, Share> shares(const std::vector<const TrialResult*>& trials, const std::string& axis,
                            const Octaves& octaves);

// An edge of the region in which most seeds train.
struct Edge {
  int inside;  // the last tick at which most seeds train
  // The nearest tried tick beyond `inside` at which most seeds do not train. Empty if there is none.
  std::optional<int> outside = {};
  // Half way between `inside` and `outside`, in ticks. Equal to `inside` if `outside` is empty.
  double middle() const { return 0.5 * (inside + outside.value_or(inside)); }
};
// edge_above() returns the edge above the tick `from`; edge_below() returns the edge below `from`. Empty if `from` is
// not in `known`, or if most seeds do not train at `from`.
std::optional<Edge> edge_above(const std::map<int, Share>& known, int from);
std::optional<Edge> edge_below(const std::map<int, Share>& known, int from);
// The tick nearest to 0 at which most seeds train. Empty if there is none.
std::optional<int> foothold(const std::map<int, Share>& known);
// The region around foothold() in which most seeds train. Without a foothold, the region is 0 octaves wide and has no
// edges.
struct Region {
  double octaves = 0;  // the width, from the middle of one edge to the middle of the other edge
  bool open = false;   // true if an edge is not known yet; the region is then at least `octaves` wide
  std::optional<Edge> below = {}, above = {};
};
Region region_of(const std::map<int, Share>& known, const Octaves& octaves);
// The next tick to try in the search for the edge above (below) `from`. While no tick outside the edge is known, the
// next tick is an octave further, but not beyond `last`. The search then bisects. Empty if the edge is found or lies
// beyond `last`, or if most seeds do not train at `from`.
std::optional<int> next_above(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);
std::optional<int> next_below(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);

}  // namespace plumb::lab
