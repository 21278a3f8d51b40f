// Reference levels (stats/reference.h) in charts and text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/plot/chart.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// The dashed lines of reference levels for a chart of `value` whose data lie in low..high. Levels are left out if they
// are so far from the data that they would flatten a line chart.
std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low,
                               double high);

// A line with the chance and reference levels of the measured values. If no trial is better than the baseline in any
// value except train_loss, the line says so. Empty if no reference other than chance is known.
std::string known_levels(const StudyResults& results);

}  // namespace plumb::lab
