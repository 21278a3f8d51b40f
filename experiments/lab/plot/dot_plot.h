// Ranked dot plots as SVG text: a row for each method with a dot at the mean, a bar for the interval and small ticks at
// the values of single trials. Colours and hover texts are as in line_chart.h.
#pragma once

#include "experiments/lab/plot/line_chart.h"

namespace plumb::lab {

// One row of a dot plot.
struct DotRow {
  std::string name = {};
  // x is the mean, and low and high are its interval. If x is not finite, there is no dot.
  PlotPoint dot = {.x = std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> singles = {};  // the values of single trials
  std::string note = {};             // text to the right of the row
  std::string title = {};            // shown on hover
  bool quiet = false;                // drawn in a muted colour, for a row of less interest
};

// A dot plot.
struct DotPlot {
  std::string id = {};  // unique in the page
  std::string title = {};
  PlotAxis x = {};
  std::vector<DotRow> rows = {};     // from top to bottom
  std::vector<PlotRule> rules = {};  // vertical lines at x = PlotRule::y
};

// One <svg> element, 480 units wide. If there is no value to draw, it has only the names of the rows.
std::string render_svg(const DotPlot& plot);

}  // namespace plumb::lab
