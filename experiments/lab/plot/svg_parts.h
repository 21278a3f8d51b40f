// The parts of charts in SVG: colours, markers, text, and scales from values to units of the drawing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

inline constexpr double width = 480, font = 13;  // in units; the page scales a chart to the width of its column
// The widths that are reserved for a letter or digit. The widths are generous, because fonts differ and phones show
// larger text.
inline constexpr double letter = 7, digit = 8.4, wide_letter = 8.9;
inline constexpr int colours = 8;  // the number of different colours of styles

// Colours that the page sets. A chart outside a page has the light colour after the comma.
inline constexpr const char *muted = "var(--muted,#5b636b)", *faint = "var(--grid,#e3e6e9)",
                            *paper = "var(--paper,#fff)";
// Attributes of SVG elements.
inline constexpr const char* quiet = R"svg( fill="var(--muted,#5b636b)")svg";
inline constexpr const char* strong = R"svg( font-weight="600")svg";
inline constexpr const char* rule_stroke =
    R"svg( stroke="var(--muted,#5b636b)" stroke-width="1.2" stroke-dasharray="3 3")svg";

// The colour of a style, as the value of a style attribute. The page sets the colour (plot_css()); without a page, the
// colour is the light colour of the style.
std::string colour_of(int style);
std::string rule_stroke_of(const PlotRule& rule);   // the line attributes of a rule in the colour of its style, or grey
std::string dash_of(int style);                     // the attribute for the dash pattern of a style
std::string marker(int style, double x, double y);  // the marker of a style: one of four shapes, filled or hollow
std::string cross(double x, double y);              // the cross of a PlotMark
// A <text> element. `anchor` is start, middle or end; `text` is escaped.
std::string text_at(double x, double y, const char* anchor, const char* attributes, std::string_view text);
// The attribute that names the series or row of an element, for the filter and the hover script of the page.
std::string belongs_to(std::string_view name);

// Wraps the body of a chart in an <svg> element. `label` describes the chart for screen readers.
std::string chart(double height, std::string_view label, std::string_view body);

// Maps the values [low, high] to the units [begin, end] along one side of the frame.
struct Scale {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;
  std::vector<double> ticks;

  bool shows(double v) const;  // whether the value can be drawn: is finite, not huge, and positive on a log scale
  double map(double v) const;  // the value, or its logarithm on a log scale
  // The position of a value, in units.
  double at(double v) const { return begin + (map(v) - map(low)) / (map(high) - map(low)) * (end - begin); }
  double at_clamped(double v) const;  // at(v); for a value outside the scale, the nearer end
};

// The scale of an axis for the given values. `begin` and `end` of the scale are not set. If `padded` is true, the scale
// leaves space around the values, and includes 0 if 0 is near.
Scale fit(const PlotAxis& axis, std::vector<double> values, bool padded);

// Appends the `ends` of intervals to `values`. The ends are limited, so that the range of the values grows on each side
// by at most half of its span. Without the limit, wide intervals of two seeds would compress all lines.
void add_ends(std::vector<double>& values, const std::vector<double>& ends, bool log);

// The scales of a plot.
struct Scales {
  Scale x, y;
  bool empty = true;  // true: the plot has no point that can be drawn
  bool shows(const PlotPoint& p) const { return x.shows(p.x) && y.shows(p.y); }  // whether the point can be drawn
  bool has_interval(const PlotPoint& p) const;  // whether the point and its interval can be drawn
};
// The scales that fit the data of a plot. The x scale reaches from the first to the last value; the y scale leaves
// space around the values. The positions of the scales on the chart are not set.
Scales fit(const Plot& plot);

// These functions draw the parts of a series: the line, the bands of the intervals and the error bars. The line is
// interrupted at points that cannot be drawn. An error bar has no cap at an end outside the scale. The positions of the
// scales must be set. The series is shifted sideways by `aside` units.
std::string line(const PlotSeries& series, const Scales& scales, double aside = 0);
std::string band(const PlotSeries& series, const Scales& scales);
std::string bars(const PlotSeries& series, const Scales& scales, double aside = 0);

}  // namespace plumb::lab::svg
