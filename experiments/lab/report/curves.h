// Charts and tables that a study makes from its results for its own sections of the report.
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
  Point where = {};        // only trials at these values
  std::string title = {};  // of the chart; if empty, the names of the value and the axis
  bool log_value = false;  // logarithmic axis of the value
};
// The chart, with a line for each combination of the other axes. Points are means over the seeds that ended ok, with
// intervals. The axis is logarithmic if its positive numbers span more than a factor of 20. The mean at 0 is then drawn
// as a dashed line whose name says so.
Plot plot_of(const StudyResults& results, const Curve& curve);

// A dot plot with a row for each combination of the axes, in the order of the trials. A row shows the mean of a value
// over the seeds that ended ok, its interval, and each seed. `name` returns the name of a row for its point without the
// seed; by default it is the label of the point.
DotPlot dots_of(const StudyResults& results, const std::string& value, const std::string& title,
                const std::function<std::string(const Point&)>& name = {});

// A published result that is shown next to the results of this study.
struct Published {
  Point where;
  std::string value, figure, source;  // "val_accuracy", "82.9 % top-1 on ImageNet", "Touvron et al. 2021, table 1"
};
// A table of published results and the means of the corresponding trials.
Section published_section(const StudyResults& results, const std::vector<Published>& published);

}  // namespace plumb::lab
