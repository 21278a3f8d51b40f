// Charts and tables that studies make from their results, for sections of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/point.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// A value against a number on an axis, with a line for each combination of the other axes: means over the seeds that
// ended ok, with intervals. The axis is logarithmic where its positive values span more than a factor of 20; a value of
// 0 is then a dashed line, named as such.
struct Curve {
  std::string value, axis;
  Point where = {};        // only trials there
  std::string title = {};  // of the chart; "" the value and the axis
  bool log_value = false;
};
Plot plot_of(const StudyResults& results, const Curve& curve);

// A row for each combination of the axes, in the order of the trials: the mean of a value over the seeds that ended ok,
// its interval, and each seed. `name` says what a row is called, without the seed; by default what its axes say.
DotPlot dots_of(const StudyResults& results, const std::string& value, const std::string& title,
                const std::function<std::string(const Point&)>& name = {});

// What somebody published about trials of a study, to stand beside what they give here.
struct Published {
  Point where;
  std::string value, figure, source;  // "val_accuracy", "82.9 % top-1 on ImageNet", "Touvron et al. 2021, table 1"
};
Section published_section(const StudyResults& results, const std::vector<Published>& published);

}  // namespace plumb::lab
