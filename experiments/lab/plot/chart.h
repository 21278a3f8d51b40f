// The data of a line chart: axes, lines, rules and marks. line_chart.h draws the chart.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

// One value of a line. If low and high are finite, [low, high] is the interval of the value. The line is interrupted at
// a value that is not finite, and on a log axis at a value that is not positive.
struct PlotPoint {
  double x = 0, y = 0;
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

// One line of a chart.
struct PlotSeries {
  std::string name = {};               // name in the legend; series with the same name and style share an entry
  int style = 0;                       // selects colour, dash pattern and marker; 40 different styles exist
  std::vector<PlotPoint> points = {};  // points in drawing order
  bool thin = false;                   // true: a light line without markers, for values of less interest
  std::string kind = thin ? "single" : "mean";  // the kind of the values in tables, such as "expected"
};

// A dashed horizontal line across the plot, with its name in the legend.
struct PlotRule {
  double y = 0;
  std::string name = {};
  std::optional<int> style = {};  // the style whose colour the rule has; no value: grey
};

// A cross in the colour of a style, for a line that ends early. If y is not finite, the cross is at the lower edge.
struct PlotMark {
  double x = 0, y = std::numeric_limits<double>::quiet_NaN();
  int style = 0;
  std::string title = {};  // the text that is shown on hover
  std::string of = {};     // the name of the series with this mark
};

// An axis of a plot.
struct PlotAxis {
  std::string title = {};
  bool log = false;  // true: logarithmic with base 10
  // The fixed ends of the axis. Values beyond a fixed end are cut off. An end without a value follows from the data.
  std::optional<double> low = {}, high = {};
  std::vector<double> ticks = {};  // fixed positions of the ticks; empty: multiples of 1, 2 and 5
  // The bounds of possible values, such as 100 %. An end that follows from the data does not lie beyond these bounds.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
};

// The form in which intervals are drawn: as a band around the line, or as error bars.
enum class PlotInterval { band, bars };

// A line chart.
struct Plot {
  std::string id = {};  // an id that is unique in the page: letters, digits and hyphens
  std::string title = {};
  PlotAxis x = {}, y = {};
  std::vector<PlotSeries> series = {};
  std::vector<PlotRule> rules = {};
  std::vector<PlotMark> marks = {};
  std::string marks_name = {};                 // text of the marks in the legend
  PlotInterval interval = PlotInterval::band;  // for `bars`, series are shifted sideways so that bars do not overlap
};

}  // namespace plumb::lab
