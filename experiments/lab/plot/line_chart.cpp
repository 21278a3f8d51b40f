#include "experiments/lab/plot/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "experiments/lab/plot/panels.h"
#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab {
namespace {

using namespace svg;

constexpr double plot_height = 250;
// The largest number of styles in one frame. With more styles, the intervals would cover each other.
constexpr std::size_t crowd = 8;

// Draws one chart. The constructor fits the frame to the data, and svg() draws.
class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), scales_(fit(plot)) {
    for (const PlotSeries& s : plot.series)
      if (std::find(styles_.begin(), styles_.end(), s.style) == styles_.end()) styles_.push_back(s.style);
    place_axes();
  }

  std::string svg() {
    std::string body;
    if (!plot_.title.empty()) body += text_at(0, 14, "start", strong, shortened(plot_.title, 60));
    body += text_at(0, top_ - 14, "start", quiet, plot_.y.title);
    body += scales_.empty ? text_at((left_ + right_) / 2, (top_ + bottom_) / 2, "middle", quiet, "no data")
                          : axes() + rules() + hover() + lines() + marks();
    body +=
        fmt::format(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="{}" stroke-width="1"/>)", left_, bottom_, right_, muted);
    body += text_at((left_ + right_) / 2, bottom_ + 36, "middle", quiet, plot_.x.title);
    const double height = legend(body, bottom_ + 58);
    body = fmt::format(
               R"(<clipPath id="{}-frame"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/></clipPath>)",
               plot_.id, left_ - 6, top_, right_ - left_ + 12, bottom_ - top_ + 1) +
           body;
    return chart(height, (plot_.title.empty() ? "" : plot_.title + ": ") + plot_.y.title + " against " + plot_.x.title,
                 body);
  }

 private:
  void place_axes() {
    y_labels_ = tick_labels(scales_.y.ticks, scales_.y.log);
    std::size_t longest = 3;
    for (const std::string& label : y_labels_) longest = std::max(longest, letters(label));
    left_ = 12 + digit * static_cast<double>(longest);
    right_ = width - 16;
    top_ = plot_.title.empty() ? 28 : 50;
    bottom_ = top_ + plot_height;
    const double inset = plot_.interval == PlotInterval::bars ? 18 : 6;
    scales_.x.begin = left_ + inset, scales_.x.end = right_ - inset;
    scales_.y.begin = bottom_, scales_.y.end = top_;
  }

  std::string axes() const {
    std::string grid, labels;
    for (std::size_t i = 0; i < scales_.y.ticks.size(); ++i) {
      const double y = scales_.y.at(scales_.y.ticks[i]);
      grid += fmt::format("M{:.1f} {:.1f}H{:.1f}", left_, y, right_);
      labels += text_at(left_ - 7, y + 4.5, "end", quiet, y_labels_[i]);
    }
    std::string ticks;
    const std::vector<std::string> names = tick_labels(scales_.x.ticks, scales_.x.log);
    double free_from = 0;
    for (std::size_t i = 0; i < scales_.x.ticks.size(); ++i) {
      const double x = scales_.x.at(scales_.x.ticks[i]), half = digit * static_cast<double>(letters(names[i])) / 2;
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
      if (scales_.y.shows(r.y) && r.y >= scales_.y.low && r.y <= scales_.y.high)
        out +=
            fmt::format(R"(<path d="M{:.1f} {:.1f}H{:.1f}"{}/>)", left_, scales_.y.at(r.y), right_, rule_stroke_of(r));
    return out;
  }

  // The sideways shift of a style, in units. Without error bars, the shift is 0.
  double aside(int style) const {
    if (plot_.interval == PlotInterval::band || styles_.size() < 2) return 0;
    const auto place = static_cast<double>(std::find(styles_.begin(), styles_.end(), style) - styles_.begin());
    return (place / static_cast<double>(styles_.size() - 1) - 0.5) *
           std::min(14.0, 4.0 * static_cast<double>(styles_.size()));
  }

  // The hover texts belong to strips over the whole height, because a line of two units is too thin to point at. The
  // text of a strip has the values of all series at the x of the strip.
  std::string hover() const {
    constexpr std::size_t most_strips = 50, most_lines = 12;
    std::map<double, std::vector<std::pair<double, std::string>>> at;
    for (const PlotSeries& s : plot_.series)
      for (const PlotPoint& p : s.points) {
        if (!scales_.shows(p)) continue;
        std::string line = s.name + ": " + short_number(p.y);
        if (scales_.has_interval(p))
          line += fmt::format(" (95 % interval {} to {})", short_number(p.low), short_number(p.high));
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
      strips.emplace_back(scales_.x.at(x), escape_markup(title));
    }
    std::string out = R"(<g fill="transparent">)";
    for (std::size_t i = 0; i < strips.size(); ++i) {
      const double from = i == 0 ? left_ : (strips[i - 1].first + strips[i].first) / 2;
      const double to = i + 1 == strips.size() ? right_ : (strips[i].first + strips[i + 1].first) / 2;
      out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>)", from,
                         top_, std::max(0.0, to - from), bottom_ - top_, strips[i].second);
    }
    return out + "</g>";
  }

  std::string lines() const {
    std::string bands, paths;
    for (const PlotSeries& s : plot_.series) {
      const std::string group = fmt::format(R"(<g style="{}"{}>)", colour_of(s.style), belongs_to(s.name));
      const std::string interval =
          plot_.interval == PlotInterval::band ? band(s, scales_) : bars(s, scales_, aside(s.style));
      (plot_.interval == PlotInterval::band ? bands : paths) += group + interval + "</g>";
      paths += group + line(s, scales_, aside(s.style)) + markers(s) + "</g>";
    }
    return fmt::format(R"(<g clip-path="{}" pointer-events="none">{}{}</g>)", fmt::format("url(#{}-frame)", plot_.id),
                       bands, paths);
  }

  // A short line has a marker at each point. A long line has only some markers; their positions depend on the style, so
  // that markers of different lines do not overlap.
  std::string markers(const PlotSeries& s) const {
    constexpr std::size_t all_marked = 16;
    const std::size_t every = s.points.size() <= all_marked ? 1 : s.points.size() / 7;
    const std::size_t first = every == 1 ? 0 : every * static_cast<std::size_t>(s.style % colours) / colours;
    std::string out;
    for (std::size_t i = 0; i < s.points.size() && !s.thin; ++i)
      if (scales_.shows(s.points[i]) && i % every == first)
        out += marker(s.style, scales_.x.at(s.points[i].x) + aside(s.style),
                      std::clamp(scales_.y.at(s.points[i].y), -1e4, 1e4));
    return out;
  }

  std::string marks() const {
    std::string out;
    std::vector<std::pair<double, double>> taken;
    for (const PlotMark& m : plot_.marks) {
      if (!scales_.x.shows(m.x)) continue;
      const double x = scales_.x.at(m.x) + aside(m.style);
      double y = scales_.y.shows(m.y) ? std::clamp(scales_.y.at(m.y), top_, bottom_) : bottom_ - 7;
      // Marks that would overlap are stacked, away from the nearer edge.
      const double step = y < (top_ + bottom_) / 2 ? 10 : -10;
      const auto meets = [&](const auto& other) {
        return std::abs(other.first - x) < 9 && std::abs(other.second - y) < 9;
      };
      while (std::any_of(taken.begin(), taken.end(), meets) && y + step > top_ && y + step < bottom_) y += step;
      taken.emplace_back(x, y);
      out += fmt::format(R"(<g style="{}"{}>{}<title>{}</title></g>)", colour_of(m.style), belongs_to(m.of),
                         cross(x, y), escape_markup(m.title));
    }
    return out;
  }

  using Entries = std::vector<std::pair<std::string, std::string>>;  // a swatch, drawn around (0, 0), and its text

  // Appends the legend below `y`: first the series in columns, then rules and marks. Returns the height of the whole
  // chart.
  double legend(std::string& body, double y) const {
    Entries series, others;
    std::set<std::pair<std::string, int>> seen;
    for (const PlotSeries& s : plot_.series)
      if (seen.insert({s.name, s.style}).second)
        series.emplace_back(
            fmt::format(R"(<g style="{}"><path d="M-13 0h26" stroke="currentColor" stroke-width="1.8"{}/>{}</g>)",
                        colour_of(s.style), dash_of(s.style), marker(s.style, 0, 0)),
            s.name);
    for (const PlotRule& r : plot_.rules)
      others.emplace_back(fmt::format(R"(<path d="M-13 0h26"{}/>)", rule_stroke_of(r)), r.name);
    if (!plot_.marks.empty() && !plot_.marks_name.empty()) others.emplace_back(cross(0, 0), plot_.marks_name);
    y = legend_rows(body, y, series, true);
    y = legend_rows(body, y, others, false);
    return y - 12;
  }

  // Appends the entries in columns that are as wide as their longest entry, and in the smallest possible number of
  // rows. Returns the y of the next row.
  static double legend_rows(std::string& body, double y, const Entries& entries, bool are_series) {
    if (entries.empty()) return y;
    std::vector<double> widths;
    for (std::size_t rows = 1; rows <= entries.size(); ++rows) {
      widths.assign((entries.size() + rows - 1) / rows, 0);
      for (std::size_t i = 0; i < entries.size(); ++i)
        widths[i % widths.size()] =
            std::max(widths[i % widths.size()],
                     50 + letter * static_cast<double>(std::min<std::size_t>(letters(entries[i].second), 52)));
      if (std::accumulate(widths.begin(), widths.end(), -16.0) <= width) break;
    }
    double x = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t column = i % widths.size();
      if (column == 0 && i > 0) x = 0, y += 20;
      body += fmt::format(R"(<g{}><g transform="{}">{}</g>{}</g>)", are_series ? belongs_to(entries[i].second) : "",
                          fmt::format("translate({:.1f} {:.1f})", x + 14, y - 4.5), entries[i].first,
                          text_at(x + 34, y, "start", "", shortened(entries[i].second, 52)));
      x += widths[column];
    }
    return y + 20;
  }

  const Plot& plot_;
  Scales scales_;
  std::vector<std::string> y_labels_;
  std::vector<int> styles_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

bool is_crowded(const Plot& plot) {
  std::set<int> styles;
  for (const PlotSeries& s : plot.series) styles.insert(s.style);
  return styles.size() > crowd;
}

std::string render_svg(const Plot& plot) { return is_crowded(plot) ? render_panels(plot) : Drawing(plot).svg(); }

}  // namespace plumb::lab
