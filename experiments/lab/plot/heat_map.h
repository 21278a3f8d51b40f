// Heat maps as SVG text. Each method has a row, each condition has a column, and each cell shows a number. Colours and
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
  std::string text = {};   // the text in the cell; "": the cell is not drawn
  std::string title = {};  // the text that is shown on hover
  bool crossed = false;    // true: the colour for bad results
};

// A heat map.
struct HeatMap {
  std::string id = {};  // an id that is unique in the page
  std::string title = {}, columns_title = {};
  std::vector<std::string> rows = {};
  using Head = std::pair<std::string, std::string>;  // the two lines above a column
  std::vector<Head> columns = {};                    // neighbouring columns with the same first line share this line
  std::vector<HeatCell> cells = {};                  // [rows, columns], row by row
  std::string legend = {};                           // a text that explains the numbers and colours
};

// The chart as one <svg> element that is 480 units wide. Throws Error unless there are rows x columns cells.
std::string render_svg(const HeatMap& map);

}  // namespace plumb::lab
