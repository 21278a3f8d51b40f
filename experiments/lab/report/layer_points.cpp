#include "experiments/lab/report/layer_points.h"

namespace plumb::lab {

std::vector<LayerPoint> layer_points(const StudyResults& results) {
  std::vector<LayerPoint> points;
  for (std::size_t i = 0; i < results.records.size(); ++i)
    for (const auto& [step, layers] : results.attached[i].layers)
      for (const BranchStats& row : layers.branches) points.push_back({&results.trials[i], step, row});
  return points;
}

}  // namespace plumb::lab
