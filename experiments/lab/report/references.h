// Reference levels (stats/reference.h) in charts and tables.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// The dashed lines of reference levels for a chart of `value` whose data lie in low..high. Levels that are so far away
// that they would flatten the chart are left out.
std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low,
                               double high);

// A table of each reference and the means of the trials that ended ok. The title says so if no trial is better than the
// linear model in any measured value but train_loss. Empty if no trial has measured one of the values.
Section references_section(const StudyResults& results);

}  // namespace plumb::lab
