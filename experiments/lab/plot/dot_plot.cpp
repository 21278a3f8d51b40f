#include "experiments/lab/plot/dot_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab {

using namespace svg;

namespace {

bool is_beyond(double v, const Scale& x) { return x.shows(v) && (v < x.low || v > x.high); }

// The ticks for the single values of a row at height y, and its dot with the interval.
std::string dot_and_ticks(const DotRow& r, const Scale& x, double y) {
  std::string drawn;
  for (const double v : r.singles)
    if (x.shows(v) && v >= x.low && v <= x.high)
      drawn +=
          fmt::format(R"(<path d="M{:.1f} {:.1f}v8" stroke="currentColor" stroke-opacity="0.8"/>)", x.at(v), y - 4);
  if (x.shows(r.dot.x)) {
    if (std::isfinite(r.dot.low) && std::isfinite(r.dot.high))
      drawn += fmt::format(
          R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="currentColor" stroke-width="2.4" stroke-opacity="0.65"/>)",
          x.at_clamped(r.dot.low), y, x.at_clamped(r.dot.high));
    drawn += is_beyond(r.dot.x, x)
                 ? text_at(x.at_clamped(r.dot.x), y + 4.5, "middle", strong, r.dot.x > x.high ? "→" : "←")
                 : fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4.2" fill="currentColor"/>)", x.at(r.dot.x), y);
  }
  return drawn;
}

// The scale of the x axis. It follows from the rows that are not quiet. A rule or a quiet row that is further from
// these rows than half of their span would compress them, so it lies beyond the frame.
Scale scale_of(const DotPlot& plot) {
  Scale x;
  x.log = plot.x.log;
  const bool all = std::ranges::all_of(plot.rows, &DotRow::quiet);
  std::vector<double> values, ends, others;
  for (const DotRow& r : plot.rows) {
    std::vector<double>& of_row = all || !r.quiet ? values : others;
    of_row.push_back(r.dot.x);
    of_row.insert(of_row.end(), r.singles.begin(), r.singles.end());
    if (all || !r.quiet) ends.insert(ends.end(), {r.dot.low, r.dot.high});
  }
  for (const PlotRule& r : plot.rules) others.push_back(r.y);
  std::erase_if(values, [&](double v) { return !x.shows(v); });
  add_ends(values, ends, x.log);
  if (values.empty()) return fit(plot.x, others, true);
  const double low = x.map(std::ranges::min(values)), high = x.map(std::ranges::max(values)),
               room = high > low ? 0.5 * (high - low) : 0.05 * std::abs(low);
  for (const double v : others)
    if (x.shows(v) && x.map(v) >= low - room && x.map(v) <= high + room) values.push_back(v);
  return fit(plot.x, values, true);
}

}  // namespace

std::string render_svg(const DotPlot& plot) {
  // Name and note of a row stand above its dot, so that the dots have the whole width.
  constexpr double row_height = 34;
  constexpr std::size_t letters_of_row = 54, longest_note = 28;
  Scale x = scale_of(plot);
  x.begin = 8, x.end = width - 8;
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
  body += fmt::format(R"(<path d="{}" stroke="{}"/><path d="M0 {:.1f}H{:.0f}" stroke="{}"/>)", grid, faint, bottom,
                      width, muted);
  for (const PlotRule& r : plot.rules)
    if (x.shows(r.y) && r.y >= x.low && r.y <= x.high)
      body += fmt::format(R"(<path d="M{:.1f} {:.1f}V{:.1f}"{}/>)", x.at(r.y), top, bottom, rule_stroke);

  double y = top + row_height / 2;
  for (const DotRow& r : plot.rows) {
    const std::string note = shortened(r.note, longest_note),
                      style = fmt::format(R"({} stroke="{}" stroke-width="7" paint-order="stroke")",
                                          r.quiet ? quiet : "", paper);  // in front of the rules
    std::string row = text_at(0, y - 2, "start", style.c_str(), shortened(r.name, letters_of_row - letters(note)));
    if (!note.empty()) row += text_at(width, y - 2, "end", style.c_str(), note);
    row += fmt::format(R"(<g style="{}">{}</g>)", r.quiet ? fmt::format("color:{}", muted) : colour_of(0),
                       dot_and_ticks(r, x, y + 9));
    row += fmt::format(R"(<rect y="{:.1f}" width="{:.0f}" height="{:.0f}" fill="transparent"><title>{}</title></rect>)",
                       y - row_height / 2, width, row_height, escape_markup(r.title));
    body += fmt::format("<g{}>{}</g>", belongs_to(r.name), row);
    y += row_height;
  }
  double height = bottom + 36;
  body += text_at(width / 2, height, "middle", quiet, plot.x.title);
  for (const PlotRule& r : plot.rules) {
    height += 20;
    const std::string where = is_beyond(r.y, x) ? " (beyond the frame)" : "";
    body += fmt::format(R"(<path d="M0 {:.1f}h26"{}/>)", height - 4.5, rule_stroke) +
            text_at(34, height, "start", "", r.name + where);
  }
  if (std::ranges::any_of(plot.rows, [&](const DotRow& r) { return is_beyond(r.dot.x, x); })) {
    height += 20;
    body += text_at(6, height, "start", strong, "→") + text_at(34, height, "start", "", "mean beyond the frame");
  }
  return chart(height + 8, plot.title.empty() ? plot.x.title : plot.title + ": " + plot.x.title, body);
}

}  // namespace plumb::lab
