// One section of a report: a table, charts and pictures.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "experiments/lab/plot/dot_plot.h"
#include "experiments/lab/plot/heat_map.h"
#include "experiments/lab/plot/line_chart.h"
#include "experiments/lab/plot/text_table.h"

namespace plumb::lab {

// Any kind of chart.
using Chart = std::variant<Plot, DotPlot, HeatMap>;

// A PNG image in a report.
struct Picture {
  std::string title, png_base64;
};

// A section of a report. Title and caption are plain text. The table is shown on the terminal, in results.md and in the
// report. The charts and pictures are shown only in the report.
struct Section {
  std::string title = {}, caption = {};
  TextTable table = {};
  std::vector<Chart> charts = {};
  std::vector<Picture> pictures = {};
};

}  // namespace plumb::lab
