// A part of its own in what a study tells: a table, and charts.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "experiments/lab/plot/dot_plot.h"
#include "experiments/lab/plot/heat_map.h"
#include "experiments/lab/plot/line_chart.h"
#include "experiments/lab/plot/text_table.h"

namespace plumb::lab {

using Chart = std::variant<Plot, DotPlot, HeatMap>;

struct Picture {
  std::string title, png_base64;
};

// Title and caption are plain text. The table is shown on the terminal, in results.md and in the report; charts and
// pictures in the report alone.
struct Section {
  std::string title = {}, caption = {};
  TextTable table = {};
  std::vector<Chart> charts = {};
  std::vector<Picture> pictures = {};
};

}  // namespace plumb::lab
