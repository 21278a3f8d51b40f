// What the charts are drawn with: colours, markers, text, and scales from values to units.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

inline constexpr double width = 480, font = 13;  // units; a chart is as wide as its column of the page
inline constexpr double letter = 7, digit = 8.4,
                        wide_letter = 8.9;  // generous advances: fonts differ, and a phone shows larger text
inline constexpr int colours = 8;

inline constexpr const char *muted = "var(--muted,#5b636b)", *faint = "var(--grid,#e3e6e9)",
                            *paper = "var(--paper,#fff)";
// Attributes.
inline constexpr const char* quiet = R"svg( fill="var(--muted,#5b636b)")svg";
inline constexpr const char* strong = R"svg( font-weight="600")svg";
inline constexpr const char* rule_stroke =
    R"svg( stroke="var(--muted,#5b636b)" stroke-width="1.2" stroke-dasharray="3 3")svg";

// The colour of a style as the value of a style attribute; the page's, and the light one where there is none. Of a page
// that is not light: plot_css().
std::string colour_of(int style);
std::string rule_stroke_of(const PlotRule& rule);   // attributes; in its series' colour, if it has one
std::string dash_of(int style);                     // an attribute
std::string marker(int style, double x, double y);  // four shapes, filled and hollow
std::string cross(double x, double y);
std::string text_at(double x, double y, const char* anchor, const char* attributes, std::string_view text);
// The attribute by which the page's filter and hover know whose an element is.
std::string belongs_to(std::string_view name);

// The <svg> element of a chart around its body.
std::string chart(double height, std::string_view label, std::string_view body);

// From values to units along one side of the frame.
struct Scale {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;
  std::vector<double> ticks;

  bool shows(double v) const;
  double map(double v) const;
  double at(double v) const { return begin + (map(v) - map(low)) / (map(high) - map(low)) * (end - begin); }
  double at_clamped(double v) const;
};

// `padded` leaves room around the data and takes zero in where it is near.
Scale fit(const PlotAxis& axis, std::vector<double> values, bool padded);

// Appends `ends` of intervals to `values`, so that they widen the range by half of what the values span on each side,
// no more: the wide ones of two seeds would flatten all.
void add_ends(std::vector<double>& values, const std::vector<double>& ends, bool log);

// The scales of a plot's data: x between the ends of the data, y with room around them. Where they lie on the chart is
// not set.
struct Scales {
  Scale x, y;
  bool empty = true;  // without a point
  bool shows(const PlotPoint& p) const { return x.shows(p.x) && y.shows(p.y); }
  bool has_interval(const PlotPoint& p) const;
};
Scales fit(const Plot& plot);

// A series between scales that lie on the chart, `aside` units from its x: the line, broken where a point cannot be
// shown; the bands of its intervals; and their bars, without a cap at an end outside the scale.
std::string line(const PlotSeries& series, const Scales& scales, double aside = 0);
std::string band(const PlotSeries& series, const Scales& scales);
std::string bars(const PlotSeries& series, const Scales& scales, double aside = 0);

}  // namespace plumb::lab::svg
