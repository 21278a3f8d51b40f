// The parts of charts in SVG: colours, markers, text, and scales from values to units of the drawing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

inline constexpr double width = 480, font = 13;  // units; the page scales a chart to the width of its column
// Widths reserved for a letter or digit. They are generous, because fonts differ and phones show larger text.
inline constexpr double letter = 7, digit = 8.4, wide_letter = 8.9;
inline constexpr int colours = 8;  // number of different colours of styles

// Colours of the page, with the light colour as default.
inline constexpr const char *muted = "var(--muted,#5b636b)", *faint = "var(--grid,#e3e6e9)",
                            *paper = "var(--paper,#fff)";
// Attributes of SVG elements.
inline constexpr const char* quiet = R"svg( fill="var(--muted,#5b636b)")svg";
inline constexpr const char* strong = R"svg( font-weight="600")svg";
inline constexpr const char* rule_stroke =
    R"svg( stroke="var(--muted,#5b636b)" stroke-width="1.2" stroke-dasharray="3 3")svg";

// The colour of a style as the value of a style attribute. It is the colour that the page sets (plot_css()), or the
// light colour without a page.
std::string colour_of(int style);
std::string rule_stroke_of(const PlotRule& rule);   // attributes of a rule's line, in the colour of its series or grey
std::string dash_of(int style);                     // the attribute of a style's dash pattern
std::string marker(int style, double x, double y);  // a marker: one of four shapes, filled or hollow
std::string cross(double x, double y);              // the cross of a mark
// A <text> element. `anchor` is start, middle or end; `text` is escaped.
std::string text_at(double x, double y, const char* anchor, const char* attributes, std::string_view text);
// The attribute that tells the filter and the hover script of the page to which series or row an element belongs.
std::string belongs_to(std::string_view name);

// Wraps the body of a chart in an <svg> element. `label` describes the chart for screen readers.
std::string chart(double height, std::string_view label, std::string_view body);

// Maps the values [low, high] to the units [begin, end] along one side of the frame.
struct Scale {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;
  std::vector<double> ticks;

  bool shows(double v) const;  // whether the value can be drawn: finite, not huge, and positive on a log scale
  double map(double v) const;  // the value, or its logarithm on a log scale
  // The position of a value in units.
  double at(double v) const { return begin + (map(v) - map(low)) / (map(high) - map(low)) * (end - begin); }
  double at_clamped(double v) const;  // the position of the value, or the nearer end of the scale if it lies outside
};

// The scale of an axis for these values; begin and end are not set. `padded` leaves room around the values and includes
// 0 if it is near.
Scale fit(const PlotAxis& axis, std::vector<double> values, bool padded);

// Appends the `ends` of intervals to `values`, limited so that the range grows on each side by at most half of the span
// of the values. Wide intervals of two seeds would otherwise compress all lines.
void add_ends(std::vector<double>& values, const std::vector<double>& ends, bool log);

// The scales of a plot.
struct Scales {
  Scale x, y;
  bool empty = true;  // the plot has no point that can be drawn
  bool shows(const PlotPoint& p) const { return x.shows(p.x) && y.shows(p.y); }  // whether the point can be drawn
  bool has_interval(const PlotPoint& p) const;  // whether the point and its interval can be drawn
};
// The scales that fit the data of a plot: x from the first to the last value, y with room around the values. Their
// positions on the chart are not set.
Scales fit(const Plot& plot);

// Draw a series with scales whose positions are set, shifted sideways by `aside` units: the line, which breaks at
// points that cannot be drawn; the bands of the intervals; and the error bars, without a cap at an end outside the
// scale.
std::string line(const PlotSeries& series, const Scales& scales, double aside = 0);
std::string band(const PlotSeries& series, const Scales& scales);
std::string bars(const PlotSeries& series, const Scales& scales, double aside = 0);

}  // namespace plumb::lab::svg
