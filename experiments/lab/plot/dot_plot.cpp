#include "experiments/lab/plot/dot_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab {

using namespace svg;

namespace {

// The ticks for the single values of a row at height y, and its dot with the interval; an empty plot has no dots.
std::string dot_and_ticks(const DotRow& r, const Scale& x, double y, bool empty) {
  std::string drawn;
  for (const double v : r.singles)
    if (x.shows(v) && v >= x.low && v <= x.high)
      drawn +=
          fmt::format(R"(<path d="M{:.1f} {:.1f}v8" stroke="currentColor" stroke-opacity="0.8"/>)", x.at(v), y - 4);
  if (!empty && x.shows(r.dot.x)) {
    if (std::isfinite(r.dot.low) && std::isfinite(r.dot.high))
      drawn += fmt::format(
          R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="currentColor" stroke-width="2.4" stroke-opacity="0.65"/>)",
          x.at_clamped(r.dot.low), y, x.at_clamped(r.dot.high));
    drawn += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4.2" fill="currentColor"/>)", x.at_clamped(r.dot.x), y);
  }
  return drawn;
}

}  // namespace

std::string render_svg(const DotPlot& plot) {
  constexpr double row_height = 21;
  constexpr std::size_t longest_note = 28;
  std::size_t names = 6, notes = 0;
  std::vector<double> values, ends;
  for (const DotRow& r : plot.rows) notes = std::max(notes, std::min(letters(r.note), longest_note));
  // The limit leaves space for the notes and the plot.
  const std::size_t longest_name = std::max<std::size_t>(20, std::min<std::size_t>(44 - notes, 32));
  for (const DotRow& r : plot.rows) {
    names = std::max(names, std::min(letters(r.name), longest_name));
    values.push_back(r.dot.x);
    values.insert(values.end(), r.singles.begin(), r.singles.end());
    ends.insert(ends.end(), {r.dot.low, r.dot.high});
  }
  Scale x;
  x.log = plot.x.log;
  std::erase_if(values, [&](double v) { return !x.shows(v); });
  const bool empty = values.empty();
  // A rule far from all values is named in the legend, but not drawn. A value that would compress the other values is
  // drawn at the edge of the frame.
  const auto [least, most] =
      empty ? std::pair(0.0, 0.0) : std::pair(std::ranges::min(values), std::ranges::max(values));
  for (const PlotRule& r : plot.rules) {
    if (!empty && r.y > most && most < 0.25 * r.y) continue;
    values.push_back(r.y);
    if (!empty && !x.log && least >= 0 && most > 4 * r.y)
      std::erase_if(values, [&](double v) { return v > 4 * r.y; }), values.push_back(4 * r.y);
  }
  add_ends(values, ends, plot.x.log);
  x = fit(plot.x, values, true);
  const double left = 8 + wide_letter * static_cast<double>(names),
               right = width - (notes > 0 ? 10 + 8.4 * static_cast<double>(notes) : 12);
  x.begin = left + 6, x.end = right - 6;
  const double top = plot.title.empty() ? 6 : 26, bottom = top + row_height * static_cast<double>(plot.rows.size());

  std::string body, grid;
  if (!plot.title.empty()) body += text_at(0, 14, "start", strong, shortened(plot.title, 60));
  const std::vector<std::string> labels = tick_labels(x.ticks, x.log);
  double free_from = 0;
  for (std::size_t i = 0; i < x.ticks.size(); ++i) {
    const double at = x.at(x.ticks[i]), half = digit * static_cast<double>(letters(labels[i])) / 2;
    grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", at, top, bottom);
    if (at - half < free_from) continue;
    body += text_at(at, bottom + 18, "middle", quiet, labels[i]);
    free_from = at + half + 6;
  }
  body += fmt::format(R"(<path d="{}" stroke="{}"/><path d="M{:.1f} {:.1f}H{:.1f}" stroke="{}"/>)", grid, faint, left,
                      bottom, right, muted);
  for (const PlotRule& r : plot.rules)
    if (x.shows(r.y) && r.y >= x.low && r.y <= x.high)
      body += fmt::format(R"(<path d="M{:.1f} {:.1f}V{:.1f}"{}/>)", x.at(r.y), top, bottom, rule_stroke);

  double y = top + row_height / 2;
  for (const DotRow& r : plot.rows) {
    std::string row = text_at(left - 4, y + 4.5, "end", r.quiet ? quiet : "", shortened(r.name, longest_name));
    row += fmt::format(R"(<g style="{}">{}</g>)", r.quiet ? fmt::format("color:{}", muted) : colour_of(0),
                       dot_and_ticks(r, x, y, empty));
    if (!r.note.empty())
      row += text_at(right + 8, y + 4.5, "start", r.quiet ? quiet : "", shortened(r.note, longest_note));
    row += fmt::format(R"(<rect y="{:.1f}" width="{:.0f}" height="{:.0f}" fill="transparent"><title>{}</title></rect>)",
                       y - row_height / 2, width, row_height, escape_markup(r.title));
    body += fmt::format("<g{}>{}</g>", belongs_to(r.name), row);
    y += row_height;
  }
  double height = bottom + 36;
  body += text_at((left + right) / 2, height, "middle", quiet, plot.x.title);
  for (const PlotRule& r : plot.rules) {
    height += 20;
    const std::string where = r.y > x.high ? " (beyond the frame)" : "";
    body += fmt::format(R"(<path d="M0 {:.1f}h26"{}/>)", height - 4.5, rule_stroke) +
            text_at(34, height, "start", "", r.name + where);
  }
  return chart(height + 8, plot.title.empty() ? plot.x.title : plot.title + ": " + plot.x.title, body);
}

}  // namespace plumb::lab
