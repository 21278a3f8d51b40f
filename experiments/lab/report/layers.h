// Layer statistics that trials attached (signals/layer_probe.h), for layers.csv and for figures.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// The text of layers.csv: a row for each branch of a block at a logged step, with the axes and the statistics.
std::string layers_csv(const StudyResults& results);
// layers.csv with all statistics of a branch (branch_columns() in signals/probe_json.h).
std::string all_layers_csv(const StudyResults& results);

// The statistics of one branch at a logged step of a trial.
struct LayerPoint {
  const TrialResult* trial;
  std::int64_t step;
  BranchStats stats;
};
// The statistics of all trials. `results` must outlive the points.
std::vector<LayerPoint> layer_points(const StudyResults& results);

}  // namespace plumb::lab
