// The data of a line chart: axes, lines, rules and marks. line_chart.h draws it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

// One value of a line. If low and high are finite, the value has the interval [low, high]. A value that is not finite,
// or that is not positive on a log axis, breaks the line.
struct PlotPoint {
  double x = 0, y = 0;
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

// One line.
struct PlotSeries {
  std::string name = {};                        // for the legend; series with the same name and style share an entry
  int style = 0;                                // selects colour, dash pattern and marker; 40 styles differ
  std::vector<PlotPoint> points = {};           // in drawing order
  bool thin = false;                            // a light line without markers, for values of less interest
  std::string kind = thin ? "single" : "mean";  // the kind of the values, for tables: "expected", ...
};

// A dashed horizontal line across the plot, with its name in the legend.
struct PlotRule {
  double y = 0;
  std::string name = {};
  std::optional<int> style = {};  // the style of the series whose colour the rule has; no value: grey
};

// A cross in the colour of a style, for a line that ends early. If y is not finite, the cross is on the lower edge.
struct PlotMark {
  double x = 0, y = std::numeric_limits<double>::quiet_NaN();
  int style = 0;
  std::string title = {};  // shown on hover
  std::string of = {};     // name of the series that the mark belongs to
};

// An axis of a plot.
struct PlotAxis {
  std::string title = {};
  bool log = false;  // base 10
  // Fixed ends; values outside are cut off. No value: the ends follow from the data.
  std::optional<double> low = {}, high = {};
  std::vector<double> ticks = {};  // fixed positions; empty: multiples of 1, 2 and 5
  // Bounds of possible values, such as 100 %. An end that is not fixed does not lie beyond them.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
};

// How intervals are drawn: as a band around the line, or as error bars.
enum class PlotInterval { band, bars };

// A line chart.
struct Plot {
  std::string id = {};  // unique in the page: letters, digits and hyphens
  std::string title = {};
  PlotAxis x = {}, y = {};
  std::vector<PlotSeries> series = {};
  std::vector<PlotRule> rules = {};
  std::vector<PlotMark> marks = {};
  std::string marks_name = {};                 // legend entry of the marks
  PlotInterval interval = PlotInterval::band;  // with bars, series are shifted sideways so that bars do not overlap
};

}  // namespace plumb::lab
