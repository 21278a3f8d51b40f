// Ranked dot plots as SVG text: a row for each method, a dot at its mean with the bar of its interval, small ticks at
// single runs. As svg_plot.h.
#pragma once

#include "experiments/lab/plot/line_chart.h"

namespace plumb::lab {

struct DotRow {
  std::string name = {};
  PlotPoint dot = {.x = std::numeric_limits<double>::quiet_NaN()};  // x is the value, low and high its interval; a
                                                                    // value that is not finite has no dot
  std::vector<double> singles = {};
  std::string note = {};   // beside the dot
  std::string title = {};  // shown on hover
  bool quiet = false;      // in the colour of what says little
};

struct DotPlot {
  std::string id = {};  // unique in the page
  std::string title = {};
  PlotAxis x = {};
  std::vector<DotRow> rows = {};     // from the top
  std::vector<PlotRule> rules = {};  // vertical; PlotRule::y is where
};

// One <svg> element, 480 units wide. Without a value to draw the rows stand alone.
std::string render_svg(const DotPlot& plot);

}  // namespace plumb::lab
