// Layer statistics that trials attached (signals/layer_probe.h), as layers.csv.
#pragma once

#include <string>

#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The text of layers.csv: a row for each branch of a block at a logged step, with the axes and the statistics.
std::string layers_csv(const StudyResults& results);
// layers.csv with all statistics of a branch (branch_columns() in signals/probe_json.h).
std::string all_layers_csv(const StudyResults& results);

}  // namespace plumb::lab
