// Heat maps as SVG text: a row for each method, a column for each condition, a number in each cell. As svg_plot.h.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

struct HeatCell {
  double value = std::numeric_limits<double>::quiet_NaN();
  double strength = 0;     // of the colour, in [0, 1]
  std::string text = {};   // nothing: no such cell
  std::string title = {};  // shown on hover
  bool crossed = false;    // something ended there
};

struct HeatMap {
  std::string id = {};  // unique in the page
  std::string title = {}, columns_title = {};
  std::vector<std::string> rows = {};
  using Head = std::pair<std::string, std::string>;
  std::vector<Head> columns = {};    // heads of two lines; a first line stands once above equal neighbours
  std::vector<HeatCell> cells = {};  // [rows, columns]
  std::string legend = {};           // what number and colour are
};

// One <svg> element, 480 units wide.
std::string render_svg(const HeatMap& map);

}  // namespace plumb::lab
