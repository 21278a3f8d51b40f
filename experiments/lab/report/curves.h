// Charts and tables that a study makes from its results for its sections of the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/point.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// A chart of a measured value against the numbers on an axis.
struct Curve {
  std::string value, axis;
  Point where = {};        // only trials that have these values
  std::string title = {};  // title of the chart; if empty, made of the names of the value and the axis
  bool log_value = false;  // whether the axis of the value is logarithmic
};
// The chart, with a line for each combination of the other axes. Points are means over the seeds (TrialGroup::summary),
// with intervals. The axis is logarithmic if its positive numbers span more than a factor of 20. On a logarithmic axis
// the mean at 0 is drawn as a dashed line, and the name of the line says that it is the mean at 0.
Figure plot_of(const StudyResults& results, const Curve& curve);

// A dot plot with a row for each combination of the axes, in the order of the trials. A row shows the mean of a value
// over the seeds (TrialGroup::summary), the interval of the mean, and the value of each seed. `name` returns the name
// of a row for its point without the seed. The default name is the label of the point.
Figure dots_of(const StudyResults& results, const std::string& value, const std::string& title,
               const std::function<std::string(const Point&)>& name = {});

// A published result about trials at `where`, for a list of its own.
struct Published {
  Point where;
  // Example: "val_accuracy", "82.9 % top-1 on ImageNet", "Touvron et al. 2021, table 1".
  std::string value, figure, source;
};
// A list of the published results about trials of this study. The list has no values of these trials, because the
// published values are for other data.
Section published_section(const StudyResults& results, const std::vector<Published>& published);

}  // namespace plumb::lab
