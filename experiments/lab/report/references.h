// Reference levels (stats/reference.h) in charts and tables.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/lab/plot/chart.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// The dashed lines of reference levels for a chart of `value` whose data lie in low..high. Levels are left out if they
// are so far from the data that they would flatten the chart.
std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low,
                               double high);

// A table with each reference level and the lowest and highest mean of a group of trials. If no trial is better than
// the baseline in any measured value except train_loss, the title says that no trial is better. The table is empty if
// no trial has measured any of the values.
Section references_section(const StudyResults& results);

}  // namespace plumb::lab
