// Searches: studies that name their next trials from the results of earlier trials.
#pragma once

#include <functional>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// The state of a search. A study with searched axes has one search for each combination of values on the other axes.
// Each search names its next trials from the results of its earlier trials.
struct Search {
  Point point;  // values on the axes that are not searched, without the seed
  // The trials of this search in the order in which they were named, then by seed. All trials have ended (ok, diverged
  // or hopeless).
  std::vector<const Record*> so_far;
  int round = 0;  // number of earlier calls of NextPoints for this search
};
// Returns the next points of a search, each with a value on every searched axis. A point with a seed is one trial; a
// point without a seed runs for every seed. An empty result ends the search. The result must depend on `search` only,
// so that a resumed sweep takes the same path. If a trial fails, its search stops until --resume has run the trial
// again.
using NextPoints = std::function<std::vector<Point>(const Search& search)>;

}  // namespace plumb::lab
