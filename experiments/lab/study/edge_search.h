// Searches by bisection for the edges on one axis at which trainings begin or cease to work (stats/edges.h).
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

// The settings of a search.
struct EdgeSearch {
  enum class Edges { upper, both };

  std::string axis;     // the searched axis; trials must measure the value "trained"
  Octaves octaves;      // tick 0 is tried first
  int lowest, highest;  // the search stays within these ticks
  Edges edges;
  // Returns the value on the axis at a tick. Octaves::tick_of must map the value back to the tick.
  std::function<AxisValue(int tick)> value;
  // Returns the next tick to try while there is no tick in `known` at which most seeds train; `known` is not empty. An
  // empty result ends the search without an edge.
  std::function<std::optional<int>(const std::map<int, Share>& known)> look;
};

// Makes a search that tries tick 0, then the ticks of `look` until most seeds train at a tick. From there it goes
// outwards by octaves, and by bisection once an edge is passed. `settings` is called in each round, when the options
// are read. It may refer to options, and must outlive Study::run.
NextPoints edge_search(std::function<EdgeSearch()> settings);

}  // namespace plumb::lab
