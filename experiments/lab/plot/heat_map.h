// Heat maps as SVG text: a row for each method, a column for each condition and a number in each cell. Colours and
// hover texts are as in line_chart.h.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

// One cell of a heat map.
struct HeatCell {
  double value = std::numeric_limits<double>::quiet_NaN();
  double strength = 0;     // strength of the colour, in [0, 1]
  std::string text = {};   // "": the cell is not drawn
  std::string title = {};  // shown on hover
  bool crossed = false;    // drawn in the colour for bad results
};

// A heat map.
struct HeatMap {
  std::string id = {};  // unique in the page
  std::string title = {}, columns_title = {};
  std::vector<std::string> rows = {};
  using Head = std::pair<std::string, std::string>;  // the two lines above a column
  std::vector<Head> columns = {};                    // neighbours with the same first line share it
  std::vector<HeatCell> cells = {};                  // [rows, columns]
  std::string legend = {};                           // explains the numbers and colours
};

// One <svg> element, 480 units wide. Throws Error unless there are rows x columns cells.
std::string render_svg(const HeatMap& map);

}  // namespace plumb::lab
