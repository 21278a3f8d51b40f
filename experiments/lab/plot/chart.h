// A line chart as data: axes, lines, rules and marks. line_chart.h draws it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

// One value of a line, with the interval [low, high] around it where both are finite. A value that is not finite, or
// not positive on a log axis, breaks the line.
struct PlotPoint {
  double x = 0, y = 0;
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

// One line, its points in drawing order. The style picks colour, dash pattern and marker together; 40 of them differ.
struct PlotSeries {
  std::string name = {};  // in the legend; series of one name and style share an entry
  int style = 0;
  std::vector<PlotPoint> points = {};
  bool thin = false;                            // a light line without markers, for what stands beside
  std::string kind = thin ? "single" : "mean";  // what its values are, in tables: "expected", ...
};

// A dashed horizontal line across the plot, named in the legend.
struct PlotRule {
  double y = 0;
  std::string name = {};
  std::optional<int> style = {};  // of the series that it belongs to, whose colour it takes; else grey
};

// A cross in the colour of a style: something ended here. Without a finite y it sits on the lower edge.
struct PlotMark {
  double x = 0, y = std::numeric_limits<double>::quiet_NaN();
  int style = 0;
  std::string title = {};  // shown on hover
  std::string of = {};     // the series that it is of
};

struct PlotAxis {
  std::string title = {};
  bool log = false;                           // base 10
  std::optional<double> low = {}, high = {};  // fixed ends; what lies outside is cut off. Otherwise the data's, rounded
  std::vector<double> ticks = {};             // fixed places; otherwise multiples of 1, 2 and 5
  // Bounds that no value can pass, such as 100 %. An axis that is not fixed ends there at the latest.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
};

enum class PlotInterval { band, bars };

struct Plot {
  std::string id = {};  // unique in the page: letters, digits and hyphens
  std::string title = {};
  PlotAxis x = {}, y = {};
  std::vector<PlotSeries> series = {};
  std::vector<PlotRule> rules = {};
  std::vector<PlotMark> marks = {};
  std::string marks_name = {};                 // legend entry of the crosses
  PlotInterval interval = PlotInterval::band;  // with bars, series step aside so that they do not hide each other
};

}  // namespace plumb::lab
