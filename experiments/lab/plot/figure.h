// A chart of a report and what it shows, as files beside the page: figures/<id>.svg and figures/<id>.csv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/plot/dot_plot.h"
#include "experiments/lab/plot/heat_map.h"
#include "experiments/lab/plot/line_chart.h"

namespace plumb::lab {

struct Figure {
  std::string id, svg, csv;
};

Figure figure_of(const Plot& plot);     // a row a point: series, kind, x, y, low, high
Figure figure_of(const DotPlot& plot);  // a row a mean or single run: name, kind, value, low, high, note
Figure figure_of(const HeatMap& map);   // a row a cell: row, both lines of the column, value, text

// A chart's <svg> as a file of its own: dark on white in a sans-serif font, whatever page or viewer shows it. A
// report's stylesheet sees to that on its page.
std::string standalone(std::string_view svg);

// What a program leaves for people to read: one HTML file, and its figures.
struct Report {
  std::string html;
  std::vector<Figure> figures = {};
};

// Text as an id and the name of a file: letters and digits in lower case, hyphens between them.
std::string slug(std::string_view text);

}  // namespace plumb::lab
