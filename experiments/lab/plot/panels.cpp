#include "experiments/lab/plot/panels.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab::svg {
namespace {

constexpr std::size_t columns = 3;
constexpr double panel_height = 64, name_height = 19, gap = 12;

struct Panel {
  std::string name;
  std::vector<const PlotSeries*> series;
  std::vector<const PlotMark*> marks;
};

std::vector<Panel> panels_of(const Plot& plot) {
  std::vector<Panel> panels;
  const auto panel = [&](const std::string& name) -> Panel& {
    const auto same = std::ranges::find(panels, name, &Panel::name);
    return same == panels.end() ? panels.emplace_back(Panel{name, {}, {}}) : *same;
  };
  for (const PlotSeries& s : plot.series) panel(s.name).series.push_back(&s);
  for (const PlotMark& m : plot.marks) panel(m.of).marks.push_back(&m);
  return panels;
}

// The hover text of a panel: all points of a short line, or the first and the last point of a long line.
std::string summary_of(const Panel& panel, const Plot& plot, const Scales& scales) {
  constexpr std::size_t few = 8;
  std::string text = panel.name;
  for (const PlotSeries* s : panel.series) {
    std::vector<const PlotPoint*> shown;
    for (const PlotPoint& p : s->points)
      if (scales.shows(p)) shown.push_back(&p);
    if (shown.size() > few) shown = {shown.front(), shown.back()};
    for (const PlotPoint* p : shown) {
      text += fmt::format("\n{} {}: {}", plot.x.title, short_number(p->x), short_number(p->y));
      if (scales.has_interval(*p))
        text += fmt::format(" (95 % interval {} to {})", short_number(p->low), short_number(p->high));
    }
  }
  for (const PlotMark* m : panel.marks) text += "\n" + m->title;
  return text;
}

// The parts that a panel does not share: its own lines with their intervals, and its marks.
std::string own_lines(const Panel& panel, const Plot& plot, const Scales& scales) {
  std::string own;
  for (const PlotSeries* s : panel.series) {
    own += plot.interval == PlotInterval::band ? band(*s, scales) : bars(*s, scales);
    own += line({.points = s->points, .thin = s->thin}, scales);  // solid, because the panel has no other series
    if (plot.interval == PlotInterval::bars)
      for (const PlotPoint& p : s->points)
        if (scales.shows(p))
          own += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.6" fill="currentColor"/>)", scales.x.at(p.x),
                             scales.y.at(p.y));
  }
  for (const PlotMark* m : panel.marks)
    if (scales.x.shows(m->x))
      own += cross(scales.x.at(m->x), scales.y.shows(m->y) ? scales.y.at_clamped(m->y) : panel_height - 6);
  return own;
}

}  // namespace

std::string render_panels(const Plot& plot) {
  const std::vector<Panel> panels = panels_of(plot);
  Scales scales = fit(plot);
  const std::vector<std::string> y_labels = tick_labels(scales.y.ticks, scales.y.log),
                                 x_labels = tick_labels(scales.x.ticks, scales.x.log);
  std::size_t longest = 3;
  for (const std::string& label : y_labels) longest = std::max(longest, letters(label));
  const double left = 10 + digit * static_cast<double>(longest),
               panel_width = (width - left - gap * (columns - 1) - 4) / columns;
  const double top = plot.title.empty() ? 28 : 50;
  const double inset = plot.interval == PlotInterval::bars ? 10 : 3;
  scales.x.begin = inset, scales.x.end = panel_width - inset;
  scales.y.begin = panel_height, scales.y.end = 0;

  // The parts that all panels share are written once: the frame with grid and rules, and all lines in grey.
  std::string frame;
  for (double tick : scales.y.ticks) frame += fmt::format("M0 {:.1f}h{:.1f}", scales.y.at(tick), panel_width);
  std::string common = fmt::format(R"(<path d="{}" stroke="{}"/>)", frame, faint);
  for (const PlotRule& r : plot.rules)
    if (scales.y.shows(r.y) && r.y >= scales.y.low && r.y <= scales.y.high)
      common += fmt::format(R"(<path d="M0 {:.1f}h{:.1f}"{}/>)", scales.y.at(r.y), panel_width, rule_stroke);
  std::string lines;
  for (const PlotSeries& s : plot.series)
    if (!s.thin) lines += line({.points = s.points, .thin = true}, scales);
  std::string body = fmt::format(
      R"svg(<defs><clipPath id="{0}-frame"><rect x="-1" y="-1" width="{1:.1f}" height="{2:.1f}"/></clipPath>)svg"
      R"svg(<g id="{0}-common">{3}<g clip-path="url(#{0}-frame)" style="color:{4}" opacity="0.28">{5}</g>)svg"
      R"svg(<path d="M0 {6:.1f}h{7:.1f}" stroke="{4}"/></g></defs>)svg",
      plot.id, panel_width + 2, panel_height + 2, common, muted, lines, panel_height, panel_width);
  if (!plot.title.empty()) body += text_at(0, 14, "start", strong, shortened(plot.title, 60));
  body += text_at(0, top - 14, "start", quiet, plot.y.title);

  double bottom = top;
  if (scales.empty) body += text_at(width / 2, top + name_height, "middle", quiet, "no data");
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const Panel& panel = panels[i];
    const double x = left + static_cast<double>(i % columns) * (panel_width + gap);
    const double y = top + name_height + static_cast<double>(i / columns) * (panel_height + name_height + gap);
    body += fmt::format(
        R"svg(<g{} transform="translate({:.1f} {:.1f})"><use href="#{}-common"/><g clip-path="url(#{}-frame)" style="{}">{}</g>{})svg"
        R"svg(<rect y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="transparent"><title>{}</title></rect></g>)svg",
        belongs_to(panel.name), x, y, plot.id, plot.id, colour_of(0), own_lines(panel, plot, scales),
        text_at(0, -5, "start", "", shortened(panel.name, 18)), -name_height, panel_width, panel_height + name_height,
        escape_markup(summary_of(panel, plot, scales)));
    double free_below = panel_height + font;  // labels are placed from the bottom up; the space below this y is used
    for (std::size_t k = 0; k < scales.y.ticks.size() && i % columns == 0; ++k) {
      const double tick = scales.y.at(scales.y.ticks[k]);
      if (tick > free_below) continue;
      body += text_at(left - 6, y + tick + 4.5, "end", quiet, y_labels[k]);
      free_below = tick - 1.3 * font;
    }
    bottom = y + panel_height;
    if (i + columns < panels.size()) continue;  // only the last panel of a column has labels on its x axis
    double free_from = -digit;
    for (std::size_t k = 0; k < scales.x.ticks.size(); ++k) {
      const double tick = scales.x.at(scales.x.ticks[k]), half = digit * static_cast<double>(letters(x_labels[k])) / 2;
      if (tick - half < free_from || tick + half > panel_width + 6) continue;
      body += text_at(x + tick, y + panel_height + 17, "middle", quiet, x_labels[k]);
      free_from = tick + half + 8;
    }
  }
  body += text_at(left, bottom + 38, "start", quiet, plot.x.title);
  double y = bottom + 38;
  for (const PlotRule& r : plot.rules) {
    y += 20;
    body += fmt::format(R"(<path d="M0 {:.1f}h26"{}/>)", y - 4.5, rule_stroke) + text_at(34, y, "start", "", r.name);
  }
  if (!plot.marks.empty() && !plot.marks_name.empty()) {
    y += 20;
    body += cross(13, y - 4.5) + text_at(34, y, "start", "", plot.marks_name);
  }
  return chart(y + 8, (plot.title.empty() ? "" : plot.title + ": ") + plot.y.title + " against " + plot.x.title, body);
}

}  // namespace plumb::lab::svg
