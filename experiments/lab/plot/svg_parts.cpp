#include "experiments/lab/plot/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "experiments/lab/plot/text.h"

namespace plumb::lab {
namespace {

// The colours of the styles, for a light and for a dark page. Readers with any colour vision can distinguish the
// colours. The contrast of the colours with the page is 4.5:1 or close to 4.5:1.
constexpr const char* palette[svg::colours][2] = {
    {"#0b66b8", "#6db3f8"}, {"#c4500c", "#ff9a5c"}, {"#00805f", "#3ccfa0"}, {"#a93f8b", "#f093d0"},
    {"#8f6a00", "#e8c547"}, {"#50565c", "#c3c9cf"}, {"#147f9a", "#76dcf2"}, {"#84232f", "#e98f8f"}};
constexpr const char* dashes[] = {"", "7 3", "2 3", "9 3 2 3", "12 4"};

}  // namespace

namespace svg {

std::string rule_stroke_of(const PlotRule& rule) {
  if (!rule.style) return rule_stroke;
  return fmt::format(R"( style="{}" stroke="currentColor" stroke-width="1.2" stroke-dasharray="3 3")",
                     colour_of(*rule.style));
}

std::string colour_of(int style) {
  return fmt::format("color:var(--series-{0},{1})", style % colours, palette[style % colours][0]);
}

std::string dash_of(int style) {
  const std::string_view dash = dashes[style / 4 % 5];
  return dash.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", dash);
}

std::string marker(int style, double x, double y) {
  const std::string fill = style / 4 % 2 ? fmt::format(R"( fill="{}" stroke="currentColor" stroke-width="1.5")", paper)
                                         : R"( fill="currentColor")";
  switch (style % 4) {
    case 0:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.4"{}/>)", x, y, fill);
    case 1:
      return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="6.2" height="6.2"{}/>)", x - 3.1, y - 3.1, fill);
    case 2:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l4.2 7.2h-8.4z"{}/>)", x, y - 4.6, fill);
    default:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l4.4 4.4l-4.4 4.4l-4.4 -4.4z"{}/>)", x, y - 4.4, fill);
  }
}

std::string text_at(double x, double y, const char* anchor, const char* attributes, std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)", x, y, anchor, attributes,
                     escape_markup(text));
}

std::string cross(double x, double y) {
  return fmt::format(R"(<path d="M{0:.1f} {1:.1f}l8 8m0 -8l-8 8" stroke="currentColor" stroke-width="2" fill="none"/>)",
                     x - 4, y - 4);
}

std::string belongs_to(std::string_view name) { return fmt::format(R"( data-of="{}")", escape_markup(name)); }

std::string chart(double height, std::string_view label, std::string_view body) {
  return fmt::format(
      R"(<svg class="plot" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg" font-size="{:.0f}" fill="currentColor">{}</svg>)",
      width, height, escape_markup(label), font, body);
}

// Values beyond 1e150 are not drawn, because their span could overflow.
bool Scale::shows(double v) const { return std::abs(v) < 1e150 && (!log || v > 1e-150); }
double Scale::map(double v) const { return log ? std::log10(v) : v; }
double Scale::at_clamped(double v) const {
  return shows(v) ? at(std::clamp(v, low, high)) : v > 0 && v > high ? end : begin;
}

Scale fit(const PlotAxis& axis, std::vector<double> values, bool padded) {
  Scale s;
  s.log = axis.log;
  std::erase_if(values, [&](double v) { return !s.shows(v); });
  for (std::optional<double> end : {axis.low, axis.high})
    if (end) values.push_back(*end);
  if (values.empty()) values.push_back(1);
  s.low = *std::min_element(values.begin(), values.end());
  s.high = *std::max_element(values.begin(), values.end());
  if (s.log) {
    const double pad = s.high / s.low < 1.2 ? 1.5 : padded ? std::pow(s.high / s.low, 0.05) : 1;
    s.low = axis.low.value_or(s.low / pad);
    s.high = axis.high.value_or(s.high * pad);
    s.ticks = axis.ticks.empty() ? log_ticks(s.low, s.high) : axis.ticks;
    std::erase_if(s.ticks, [&](double tick) { return !s.shows(tick); });
    return s;
  }
  if (s.high - s.low <= 1e-9 * std::abs(s.high) || s.high == s.low) {
    const double pad = s.high == 0 ? 1 : std::abs(s.high) * 0.1;
    s.low -= pad, s.high += pad;
  }
  if (padded) {
    const double pad = 0.04 * (s.high - s.low);
    s.low = s.low >= 0 && s.low < 0.35 * s.high ? 0 : s.low - pad;
    s.high += pad;
  }
  s.low = axis.low.value_or(std::max(s.low, axis.least));
  s.high = axis.high.value_or(std::min(s.high, axis.most));
  s.ticks = axis.ticks.empty() ? linear_ticks(s.low, s.high, padded ? 5 : 6) : axis.ticks;
  return s;
}

void add_ends(std::vector<double>& values, const std::vector<double>& ends, bool log) {
  Scale s;
  s.log = log;
  std::vector<double> mapped;
  for (double v : values)
    if (s.shows(v)) mapped.push_back(s.map(v));
  if (mapped.empty()) return;
  const auto [low, high] = std::minmax_element(mapped.begin(), mapped.end());
  const double room = *high > *low ? 0.5 * (*high - *low) : std::numeric_limits<double>::infinity();
  for (double end : ends)
    if (s.shows(end)) {
      const double kept = std::clamp(s.map(end), *low - room, *high + room);
      values.push_back(log ? std::pow(10.0, kept) : kept);
    }
}

bool Scales::has_interval(const PlotPoint& p) const {
  return shows(p) && std::isfinite(p.low) && std::isfinite(p.high);
}

Scales fit(const Plot& plot) {
  Scales s;
  std::vector<double> xs, ys, ends;
  s.x.log = plot.x.log, s.y.log = plot.y.log;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& p : series.points) {
      if (!s.shows(p)) continue;
      xs.push_back(p.x);
      ys.push_back(p.y);
      ends.insert(ends.end(), {p.low, p.high});
    }
  for (const PlotMark& m : plot.marks)
    if (s.x.shows(m.x)) xs.push_back(m.x), ys.push_back(m.y);
  s.empty = xs.empty();
  for (const PlotRule& r : plot.rules) ys.push_back(r.y);
  add_ends(ys, ends, s.y.log);
  s.x = fit(plot.x, xs, false);
  s.y = fit(plot.y, ys, true);
  return s;
}

std::string line(const PlotSeries& s, const Scales& scales, double aside) {
  std::string d;
  bool open = false;
  for (const PlotPoint& p : s.points) {
    const bool shown = scales.shows(p);
    if (shown)
      d += fmt::format("{}{:.1f} {:.1f}", open ? "L" : "M", scales.x.at(p.x) + aside,
                       std::clamp(scales.y.at(p.y), -1e4, 1e4));
    open = shown;
  }
  return fmt::format(R"(<path d="{}" fill="none" stroke="currentColor" stroke-width="{}" stroke-linejoin="round"{}/>)",
                     d, s.thin ? 1.1 : 1.8, dash_of(s.style));
}

std::string band(const PlotSeries& s, const Scales& scales) {
  std::string out;
  for (std::size_t i = 0; i < s.points.size();) {
    std::string upper, lower;
    std::size_t n = 0;
    for (; i < s.points.size() && scales.has_interval(s.points[i]); ++i, ++n) {
      const PlotPoint& p = s.points[i];
      upper += fmt::format("{}{:.1f} {:.1f}", n ? "L" : "M", scales.x.at(p.x), scales.y.at_clamped(p.high));
      lower = fmt::format("L{:.1f} {:.1f}", scales.x.at(p.x), scales.y.at_clamped(p.low)) + lower;
    }
    if (n > 1) out += fmt::format(R"(<path d="{}{}Z" fill="currentColor" fill-opacity="0.16"/>)", upper, lower);
    if (n == 0) ++i;
  }
  return out;
}

std::string bars(const PlotSeries& s, const Scales& scales, double aside) {
  std::string d;
  for (const PlotPoint& p : s.points)
    if (scales.has_interval(p)) {
      const double x = scales.x.at(p.x) + aside;
      d += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, scales.y.at_clamped(p.low), scales.y.at_clamped(p.high));
      for (double end : {p.low, p.high})
        if (scales.y.shows(end) && end >= scales.y.low && end <= scales.y.high)
          d += fmt::format("M{:.1f} {:.1f}h5", x - 2.5, scales.y.at(end));
    }
  return d.empty() ? d : fmt::format(R"(<path d="{}" fill="none" stroke="currentColor"/>)", d);
}

}  // namespace svg

std::string plot_css() {
  std::string light, dark;
  for (int i = 0; i < svg::colours; ++i) {
    light += fmt::format("--series-{}:{};", i, palette[i][0]);
    dark += fmt::format("--series-{}:{};", i, palette[i][1]);
  }
  return fmt::format(":root{{{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n", light, dark);
}

}  // namespace plumb::lab
