// Searches that trace by bisection where, along one axis, trainings begin or cease to work (stats/edges.h).
//
//   study.search(lab::edge_search([&] {
//     return lab::EdgeSearch{.axis = "lr", .octaves = {first_lr, 2}, .lowest = -14, .highest = 14, .edges = ..};
//   }));
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "experiments/lab/stats/edges.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

struct EdgeSearch {
  enum class Edges { upper, both };

  std::string axis;     // searched; its trials measure "trained"
  Octaves octaves;      // tick 0 is tried first
  int lowest, highest;  // no edge is traced beyond these ticks
  Edges edges;
  // The value on the axis at a tick. Octaves::tick_of must lead back to the tick.
  std::function<AxisValue(int tick)> value;
  // The next tick to try while most seeds train at none of `known`, which is not empty. Nothing: the search ends
  // without an edge.
  std::function<std::optional<int>(const std::map<int, Share>& known)> look;
};

// Tick 0, then where `look` says until most seeds train at a tick; from there outwards by octaves, and by bisection
// once an edge is passed. `settings` is called in each round, after the options were read: it may refer to them, and
// must outlive the study's run.
NextPoints edge_search(std::function<EdgeSearch()> settings);

}  // namespace plumb::lab
