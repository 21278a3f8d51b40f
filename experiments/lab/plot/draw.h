// Draws charts.
#pragma once

#include <string>
#include <string_view>

#include "experiments/lab/plot/dot_plot.h"
#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/heat_map.h"
#include "experiments/lab/plot/line_chart.h"

namespace plumb::lab {

// Each of these functions draws a chart. The columns of the CSV text are:
Figure figure_of(const Plot& plot);     // series, kind, x, y, low, high; a row for each point
Figure figure_of(const DotPlot& plot);  // name, kind, value, low, high, note; a row for each mean and each single trial
Figure figure_of(const HeatMap& map);   // row, depth, lr (the two heads of a column), value, text; a row for each cell

// Turns the <svg> element of a chart into the content of a file. In any page or viewer, the chart in the file is dark
// on white, in a sans-serif font. In a report, the stylesheet of the page sets colours and font instead.
std::string standalone(std::string_view svg);

// Turns a text into an id or a file name. The result has lower-case letters and digits, with hyphens in place of other
// characters.
std::string slug(std::string_view text);

}  // namespace plumb::lab
