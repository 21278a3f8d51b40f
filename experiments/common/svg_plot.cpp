#include "experiments/common/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "experiments/common/plot_text.h"

namespace plumb::lab {
namespace {

constexpr double width = 480, plot_height = 250, font = 13;
constexpr double letter = 7, digit = 8.4;  // generous advances: fonts differ, and a phone shows larger text
constexpr int colours = 8;
constexpr std::size_t crowd = 8;  // intervals of more styles would cover each other

// Told apart by readers with any colour vision, at 4.5:1 or near it against the page; the second of each pair is for a dark page.
constexpr const char* palette[colours][2] = {{"#0b66b8", "#6db3f8"}, {"#c4500c", "#ff9a5c"}, {"#00805f", "#3ccfa0"}, {"#a93f8b", "#f093d0"},
                                             {"#8f6a00", "#e8c547"}, {"#50565c", "#c3c9cf"}, {"#147f9a", "#76dcf2"}, {"#84232f", "#e98f8f"}};
constexpr const char *muted = "var(--muted,#5b636b)", *faint = "var(--grid,#e3e6e9)", *paper = "var(--paper,#fff)";
constexpr const char* dashes[] = {"", "7 3", "2 3", "9 3 2 3", "12 4"};

std::string colour_of(int style) { return fmt::format("color:var(--series-{0},{1})", style % colours, palette[style % colours][0]); }

std::string dash_of(int style) {
  const std::string_view dash = dashes[style / 4 % 5];
  return dash.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", dash);
}

// Four shapes, filled and hollow.
std::string marker(int style, double x, double y) {
  const std::string fill = style / 4 % 2 ? fmt::format(R"( fill="{}" stroke="currentColor" stroke-width="1.5")", paper) : R"( fill="currentColor")";
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
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)", x, y, anchor, attributes, escape_markup(text));
}

// Attributes.
constexpr const char* quiet = R"svg( fill="var(--muted,#5b636b)")svg";
constexpr const char* strong = R"svg( font-weight="600")svg";
constexpr const char* rule_stroke = R"svg( stroke="var(--muted,#5b636b)" stroke-width="1.2" stroke-dasharray="3 3")svg";

// From values to units along one side of the frame.
struct Scale {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;
  std::vector<double> ticks;

  // Beyond 1e150 a span could overflow; such a value has no place on a chart either.
  bool shows(double v) const { return std::abs(v) < 1e150 && (!log || v > 1e-150); }
  double map(double v) const { return log ? std::log10(v) : v; }
  double at(double v) const { return begin + (map(v) - map(low)) / (map(high) - map(low)) * (end - begin); }
  double at_clamped(double v) const { return shows(v) ? at(std::clamp(v, low, high)) : begin; }
};

// `padded` leaves room around the data and takes zero in where it is near.
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
  s.low = axis.low.value_or(s.low);
  s.high = axis.high.value_or(s.high);
  s.ticks = axis.ticks.empty() ? linear_ticks(s.low, s.high, padded ? 5 : 6) : axis.ticks;
  return s;
}

// One chart: the frame is fitted to the data first, then everything is drawn into it.
class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const PlotSeries& s : plot.series)
      if (std::find(styles_.begin(), styles_.end(), s.style) == styles_.end()) styles_.push_back(s.style);
    fit_axes();
  }

  std::string svg() {
    std::string body;
    if (!plot_.title.empty()) body += text_at(0, 14, "start", strong, shortened(plot_.title, 60));
    body += text_at(0, top_ - 14, "start", quiet, plot_.y.title);
    body += empty_ ? text_at((left_ + right_) / 2, (top_ + bottom_) / 2, "middle", quiet, "no data") : axes() + rules() + hover() + lines() + marks();
    body += fmt::format(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="{}" stroke-width="1"/>)", left_, bottom_, right_, muted);
    body += text_at((left_ + right_) / 2, bottom_ + 36, "middle", quiet, plot_.x.title);
    const double height = legend(body, bottom_ + 58);
    return fmt::format(
        R"(<svg class="plot" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg" font-size="{:.0f}" fill="currentColor">)"
        R"(<clipPath id="{}-frame"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/></clipPath>{}</svg>)",
        width, height, escape_markup(plot_.title + ": " + plot_.y.title + " against " + plot_.x.title), font, plot_.id, left_ - 6, top_,
        right_ - left_ + 12, bottom_ - top_ + 1, body);
  }

 private:
  bool shows(const PlotPoint& p) const { return x_.shows(p.x) && y_.shows(p.y); }
  bool has_interval(const PlotPoint& p) const { return shows(p) && std::isfinite(p.low) && std::isfinite(p.high); }

  void fit_axes() {
    std::vector<double> xs, ys, ends;
    x_.log = plot_.x.log, y_.log = plot_.y.log;
    for (const PlotSeries& s : plot_.series)
      for (const PlotPoint& p : s.points) {
        if (!shows(p)) continue;
        xs.push_back(p.x);
        ys.push_back(p.y);
        ends.insert(ends.end(), {p.low, p.high});
      }
    for (const PlotMark& m : plot_.marks)
      if (x_.shows(m.x)) xs.push_back(m.x), ys.push_back(m.y);
    empty_ = xs.empty();
    for (const PlotRule& r : plot_.rules) ys.push_back(r.y);
    add_ends(ys, ends);
    x_ = fit(plot_.x, xs, false);
    y_ = fit(plot_.y, ys, true);
    y_labels_ = tick_labels(y_.ticks, y_.log);
    std::size_t longest = 3;
    for (const std::string& label : y_labels_) longest = std::max(longest, letters(label));
    left_ = 12 + digit * static_cast<double>(longest);
    right_ = width - 16;
    top_ = plot_.title.empty() ? 28 : 50;
    bottom_ = top_ + plot_height;
    const double inset = plot_.interval == PlotInterval::bars ? 18 : 6;
    x_.begin = left_ + inset, x_.end = right_ - inset;
    y_.begin = bottom_, y_.end = top_;
  }

  // Lets intervals widen the y range by half of what the values span on each side, no more: the wide ones of two seeds would flatten all.
  void add_ends(std::vector<double>& ys, const std::vector<double>& ends) const {
    std::vector<double> mapped;
    for (double y : ys)
      if (y_.shows(y)) mapped.push_back(y_.map(y));
    if (mapped.empty()) return;
    const auto [low, high] = std::minmax_element(mapped.begin(), mapped.end());
    const double room = *high > *low ? 0.5 * (*high - *low) : std::numeric_limits<double>::infinity();
    for (double end : ends)
      if (y_.shows(end)) {
        const double kept = std::clamp(y_.map(end), *low - room, *high + room);
        ys.push_back(y_.log ? std::pow(10.0, kept) : kept);
      }
  }

  std::string axes() const {
    std::string grid, labels;
    for (std::size_t i = 0; i < y_.ticks.size(); ++i) {
      const double y = y_.at(y_.ticks[i]);
      grid += fmt::format("M{:.1f} {:.1f}H{:.1f}", left_, y, right_);
      labels += text_at(left_ - 7, y + 4.5, "end", quiet, y_labels_[i]);
    }
    std::string ticks;
    const std::vector<std::string> names = tick_labels(x_.ticks, x_.log);
    double free_from = 0;
    for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
      const double x = x_.at(x_.ticks[i]), half = digit * static_cast<double>(letters(names[i])) / 2;
      ticks += fmt::format("M{:.1f} {:.1f}v5", x, bottom_);
      if (x - half < free_from) continue;
      labels += text_at(std::min(x, width - half), bottom_ + 19, "middle", quiet, names[i]);
      free_from = x + half + 6;
    }
    return fmt::format(R"(<path d="{}" stroke="{}"/><path d="{}" stroke="{}"/>{})", grid, faint, ticks, muted, labels);
  }

  std::string rules() const {
    std::string out;
    for (const PlotRule& r : plot_.rules)
      if (y_.shows(r.y) && r.y >= y_.low && r.y <= y_.high)
        out += fmt::format(R"(<path d="M{:.1f} {:.1f}H{:.1f}"{}/>)", left_, y_.at(r.y), right_, rule_stroke);
    return out;
  }

  // With error bars, how far a style stands aside of its x.
  double aside(int style) const {
    if (plot_.interval == PlotInterval::band || styles_.size() < 2) return 0;
    const auto place = static_cast<double>(std::find(styles_.begin(), styles_.end(), style) - styles_.begin());
    return (place / static_cast<double>(styles_.size() - 1) - 0.5) * std::min(14.0, 4.0 * static_cast<double>(styles_.size()));
  }

  // Strips over the whole height, each with the values of all series at its x: nobody can point at a line two units wide.
  std::string hover() const {
    constexpr std::size_t most_strips = 50, most_lines = 12;
    std::map<double, std::vector<std::pair<double, std::string>>> at;
    for (const PlotSeries& s : plot_.series)
      for (const PlotPoint& p : s.points) {
        if (!shows(p)) continue;
        std::string line = s.name + ": " + short_number(p.y);
        if (has_interval(p)) line += fmt::format(" (95 % interval {} to {})", short_number(p.low), short_number(p.high));
        at[p.x].emplace_back(p.y, std::move(line));
      }
    const std::size_t every = (at.size() + most_strips - 1) / most_strips;
    std::vector<std::pair<double, std::string>> strips;
    for (std::size_t i = 0; auto& [x, values] : at) {
      if (i++ % std::max<std::size_t>(every, 1)) continue;
      std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
      std::string title = plot_.x.title + " " + short_number(x);
      for (std::size_t k = 0; k < std::min(values.size(), most_lines); ++k) title += "\n" + values[k].second;
      if (values.size() > most_lines) title += fmt::format("\n… and {} more", values.size() - most_lines);
      strips.emplace_back(x_.at(x), escape_markup(title));
    }
    std::string out = R"(<g fill="transparent">)";
    for (std::size_t i = 0; i < strips.size(); ++i) {
      const double from = i == 0 ? left_ : (strips[i - 1].first + strips[i].first) / 2;
      const double to = i + 1 == strips.size() ? right_ : (strips[i].first + strips[i + 1].first) / 2;
      out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>)", from, top_,
                         std::max(0.0, to - from), bottom_ - top_, strips[i].second);
    }
    return out + "</g>";
  }

  std::string lines() const {
    std::string bands, paths;
    for (const PlotSeries& s : plot_.series) {
      const std::string colour = colour_of(s.style);
      if (plot_.interval == PlotInterval::band && !is_crowded(plot_)) bands += fmt::format(R"(<g style="{}">{}</g>)", colour, band(s));
      paths += fmt::format(R"(<g style="{}">{}{}</g>)", colour, plot_.interval == PlotInterval::bars && !is_crowded(plot_) ? bars(s) : "", line(s));
    }
    return fmt::format(R"(<g clip-path="{}" pointer-events="none">{}{}</g>)", fmt::format("url(#{}-frame)", plot_.id), bands, paths);
  }

  std::string band(const PlotSeries& s) const {
    std::string out;
    for (std::size_t i = 0; i < s.points.size();) {
      std::string upper, lower;
      std::size_t n = 0;
      for (; i < s.points.size() && has_interval(s.points[i]); ++i, ++n) {
        const PlotPoint& p = s.points[i];
        upper += fmt::format("{}{:.1f} {:.1f}", n ? "L" : "M", x_.at(p.x), y_.at_clamped(p.high));
        lower = fmt::format("L{:.1f} {:.1f}", x_.at(p.x), y_.at_clamped(p.low)) + lower;
      }
      if (n > 1) out += fmt::format(R"(<path d="{}{}Z" fill="currentColor" fill-opacity="0.16"/>)", upper, lower);
      if (n == 0) ++i;
    }
    return out;
  }

  std::string bars(const PlotSeries& s) const {
    std::string d;
    for (const PlotPoint& p : s.points)
      if (has_interval(p)) {
        // An end outside the frame has no cap.
        const double x = x_.at(p.x) + aside(s.style), low = y_.at_clamped(p.low), high = y_.at_clamped(p.high);
        d += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, low, high);
        for (double end : {p.low, p.high})
          if (y_.shows(end) && end >= y_.low && end <= y_.high) d += fmt::format("M{:.1f} {:.1f}h5", x - 2.5, y_.at(end));
      }
    return d.empty() ? d : fmt::format(R"(<path d="{}" fill="none" stroke="currentColor"/>)", d);
  }

  // Few points carry a marker each; long lines carry some, set off by style so that they do not meet.
  std::string line(const PlotSeries& s) const {
    constexpr std::size_t all_marked = 16;
    const std::size_t every = s.points.size() <= all_marked ? 1 : s.points.size() / (is_crowded(plot_) ? 4 : 7);
    const std::size_t first = every == 1 ? 0 : every * static_cast<std::size_t>(s.style % colours) / colours;
    std::string d, markers;
    bool open = false;
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const PlotPoint& p = s.points[i];
      if (!shows(p)) {
        open = false;
        continue;
      }
      const double x = x_.at(p.x) + aside(s.style), y = std::clamp(y_.at(p.y), -1e4, 1e4);
      d += fmt::format("{}{:.1f} {:.1f}", open ? "L" : "M", x, y);
      open = true;
      if (!s.thin && i % every == first) markers += marker(s.style, x, y);
    }
    return fmt::format(R"(<path d="{}" fill="none" stroke="currentColor" stroke-width="{}" stroke-linejoin="round"{}/>{})", d, s.thin ? 1.1 : 1.8,
                       dash_of(s.style), markers);
  }

  std::string marks() const {
    std::string out;
    std::vector<std::pair<double, double>> taken;
    for (const PlotMark& m : plot_.marks) {
      if (!x_.shows(m.x)) continue;
      const double x = x_.at(m.x) + aside(m.style);
      double y = y_.shows(m.y) ? std::clamp(y_.at(m.y), top_, bottom_) : bottom_ - 7;
      // Marks that would meet stand on each other, away from the nearer edge.
      const double step = y < (top_ + bottom_) / 2 ? 10 : -10;
      const auto meets = [&](const auto& other) { return std::abs(other.first - x) < 9 && std::abs(other.second - y) < 9; };
      while (std::any_of(taken.begin(), taken.end(), meets) && y + step > top_ && y + step < bottom_) y += step;
      taken.emplace_back(x, y);
      out += fmt::format(R"(<g style="{}">{}<title>{}</title></g>)", colour_of(m.style), cross(x, y), escape_markup(m.title));
    }
    return out;
  }

  static std::string cross(double x, double y) {
    return fmt::format(R"(<path d="M{0:.1f} {1:.1f}l8 8m0 -8l-8 8" stroke="currentColor" stroke-width="2" fill="none"/>)", x - 4, y - 4);
  }

  using Entries = std::vector<std::pair<std::string, std::string>>;  // swatch around (0, 0), text

  // Appends the legend below `y`: the series in columns, then rules and marks; returns the height of the whole chart.
  double legend(std::string& body, double y) const {
    Entries series, others;
    std::set<std::pair<std::string, int>> seen;
    for (const PlotSeries& s : plot_.series)
      if (seen.insert({s.name, s.style}).second)
        series.emplace_back(fmt::format(R"(<g style="{}"><path d="M-13 0h26" stroke="currentColor" stroke-width="1.8"{}/>{}</g>)", colour_of(s.style),
                                        dash_of(s.style), marker(s.style, 0, 0)),
                            s.name);
    for (const PlotRule& r : plot_.rules) others.emplace_back(fmt::format(R"(<path d="M-13 0h26"{}/>)", rule_stroke), r.name);
    if (!plot_.marks.empty() && !plot_.marks_name.empty()) others.emplace_back(cross(0, 0), plot_.marks_name);
    for (Entries* entries : {&series, &others}) y = legend_rows(body, y, *entries);
    return y - 12;
  }

  // The fewest rows that fit, in columns as wide as their longest entry; returns where the next row goes.
  static double legend_rows(std::string& body, double y, Entries& entries) {
    if (entries.empty()) return y;
    for (auto& [swatch, name] : entries) name = shortened(name, 52);
    std::vector<double> widths;
    for (std::size_t rows = 1; rows <= entries.size(); ++rows) {
      widths.assign((entries.size() + rows - 1) / rows, 0);
      for (std::size_t i = 0; i < entries.size(); ++i)
        widths[i % widths.size()] = std::max(widths[i % widths.size()], 50 + letter * static_cast<double>(letters(entries[i].second)));
      if (std::accumulate(widths.begin(), widths.end(), -16.0) <= width) break;
    }
    double x = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t column = i % widths.size();
      if (column == 0 && i > 0) x = 0, y += 20;
      body += fmt::format(R"(<g transform="{}">{}</g>)", fmt::format("translate({:.1f} {:.1f})", x + 14, y - 4.5), entries[i].first);
      body += text_at(x + 34, y, "start", "", entries[i].second);
      x += widths[column];
    }
    return y + 20;
  }

  const Plot& plot_;
  Scale x_, y_;
  std::vector<std::string> y_labels_;
  std::vector<int> styles_;
  bool empty_ = true;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

bool is_crowded(const Plot& plot) {
  std::set<int> styles;
  for (const PlotSeries& s : plot.series) styles.insert(s.style);
  return styles.size() > crowd;
}

std::string render_svg(const Plot& plot) { return Drawing(plot).svg(); }

std::string plot_css() {
  std::string light, dark;
  for (int i = 0; i < colours; ++i) {
    light += fmt::format("--series-{}:{};", i, palette[i][0]);
    dark += fmt::format("--series-{}:{};", i, palette[i][1]);
  }
  return fmt::format(":root{{{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n", light, dark);
}

}  // namespace plumb::lab
