// Where, along a geometric grid, trainings begin or cease to work: for studies that trace an edge by bisection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// The grid: start 2^(tick / ticks), ticks to an octave.
struct Octaves {
  double start;
  int ticks;
  double at(double tick) const;
  int tick_of(double x) const;  // the nearest
  // Of whole numbers: the lowest tick, 0 or below, from which on each rounds to a number of its own whose nearest tick
  // it is, at least `least`.
  int lowest_whole(double least) const;
};

// The share of seeds that trained, with its 95 % interval (Wilson 1927).
struct Share {
  std::int64_t trained = 0, seeds = 0;
  double value() const { return static_cast<double>(trained) / static_cast<double>(seeds); }
  bool most() const { return 2 * trained > seeds; }
  double low() const;
  double high() const;
};
// "2/3"
std::string to_string(const Share& share);

// By tick of the number on `axis`; a trial trained where it ended ok and measured "trained" above 0.
std::map<int, Share> shares(const std::vector<const Record*>& trials, const std::string& axis, const Octaves& octaves);
std::map<int, Share> shares(const std::vector<const TrialResult*>& trials, const std::string& axis,
                            const Octaves& octaves);

// The edge above `from`, where most seeds train: the last tick, going up, at which they do, and the first at which they
// do not, once it is known.
struct Edge {
  int inside;
  std::optional<int> outside = {};
  double middle() const { return 0.5 * (inside + outside.value_or(inside)); }  // in ticks, half way between the two
};
std::optional<Edge> edge_above(const std::map<int, Share>& known,
                               int from);  // nothing: `from` is unknown, or does not train
std::optional<Edge> edge_below(const std::map<int, Share>& known, int from);  // going down
// A tick at which most train, the one nearest to 0.
std::optional<int> foothold(const std::map<int, Share>& known);
// How far the ticks at which most train reach around the foothold, from the middle of one edge to that of the other; 0
// without one.
struct Width {
  double octaves = 0;
  bool open = false;  // an edge lies beyond what is known: it is at least so wide
};
Width width_of(const std::map<int, Share>& known, const Octaves& octaves);
// The tick to try next for it: an octave further, at most `last`, until one is outside, then half way. Nothing: it is
// found, or lies beyond `last`.
std::optional<int> next_above(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);
std::optional<int> next_below(const std::map<int, Share>& known, int from, const Octaves& octaves, int last);

}  // namespace plumb::lab
