// Layer statistics that trials attached (signals/layer_probe.h), for figures.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// The statistics of one branch at a logged step of a trial.
struct LayerPoint {
  const TrialResult* trial;
  std::int64_t step;
  BranchStats stats;
};
// The statistics of all trials. `results` must outlive the points.
std::vector<LayerPoint> layer_points(const StudyResults& results);

}  // namespace plumb::lab
