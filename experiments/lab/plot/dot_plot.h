// Ranked dot plots as SVG text. Each method has a row with a dot at the mean, a bar for the interval and small ticks at
// the values of single trials. Colours and hover texts are as in line_chart.h.
#pragma once

#include "experiments/lab/plot/line_chart.h"

namespace plumb::lab {

// One row of a dot plot.
struct DotRow {
  std::string name = {};
  // dot.x is the mean, and [dot.low, dot.high] is its interval. If dot.x is not finite, the row has no dot.
  PlotPoint dot = {.x = std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> singles = {};  // the values of single trials
  std::string note = {};             // text above the row, to the right
  std::string title = {};            // text that is shown on hover
  // true: a muted colour, for a row of less interest; if the row is far from the others, an arrow at the frame
  bool quiet = false;
};

// A dot plot.
struct DotPlot {
  std::string id = {};  // an id that is unique in the page
  std::string title = {};
  PlotAxis x = {};
  std::vector<DotRow> rows = {};     // the rows from top to bottom
  std::vector<PlotRule> rules = {};  // vertical lines at x = PlotRule::y; if far from the dots, only named
};

// The chart as one <svg> element that is 480 units wide. If no value can be drawn, the chart has only the names of the
// rows.
std::string render_svg(const DotPlot& plot);

}  // namespace plumb::lab
