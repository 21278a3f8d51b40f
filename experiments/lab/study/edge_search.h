// Searches on one axis for the edges at which trainings begin or cease to work. The searches use bisection
// (stats/edges.h).
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

  std::string axis;     // name of the searched axis; trials must measure the value "trained"
  Octaves octaves;      // the grid of the search; tick 0 is tried first
  int lowest, highest;  // lowest and highest tick that the search may try
  Edges edges;
  // Returns the value on the axis at a tick. Octaves::tick_of must map the value back to the tick.
  std::function<AxisValue(int tick)> value;
  // Returns the next tick to try. Called while most seeds train at no tick of `known`; `known` is not empty. An empty
  // result ends the search without an edge.
  std::function<std::optional<int>(const std::map<int, Share>& known)> look;
};

// Makes a search that tries tick 0, then the ticks of `look` until most seeds train at a tick. From this tick the
// search goes outwards by octaves. When the search has passed an edge, it continues by bisection. `settings` is called
// in each round, after the options are read. `settings` may refer to options, and must outlive Study::run.
NextPoints edge_search(std::function<EdgeSearch()> settings);

}  // namespace plumb::lab
