// A drawn chart of a report and the data of the chart, as files: figures/<id>.svg and figures/<id>.csv.
#pragma once

#include <string>
#include <vector>

namespace plumb::lab {

// A chart as SVG text, and the data of the chart as CSV text.
struct Figure {
  std::string id, svg, csv;
};

// A report: one HTML file, its figures, and the text that a terminal shows.
struct Report {
  std::string html;
  std::vector<Figure> figures = {};
  std::string terminal = {};
};

}  // namespace plumb::lab
