// References (stats/reference.h) in charts and tables.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// The dashed lines of a chart of `value`, whose values lie in low..high: those that are not so far that they would
// flatten it.
std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low,
                               double high);

// Each reference beside the means of the trials that ended ok. The title says where no trial is better than a linear
// model. Empty where no trial has one of the values.
Section references_section(const StudyResults& results);

}  // namespace plumb::lab
