// Passports that trials attached (signals/layer_probe.h), as layers.csv and for figures.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/results.h"

namespace plumb::lab {

// layers.csv: the axes, step, block and branch, then what passports measure there.
std::string layers_csv(const StudyResults& results);
// The same for reports (ReportInput::layers).
std::vector<LayerPoint> layer_points(const StudyResults& results);

}  // namespace plumb::lab
