#include "experiments/lab/plot/heat_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab {

using namespace svg;

std::string render_svg(const HeatMap& map) {
  check(map.cells.size() == map.rows.size() * map.columns.size(), "[heat_map] expected {} x {} cells, got {}",
        map.rows.size(), map.columns.size(), map.cells.size());
  constexpr double row_height = 21, widest = 92;
  std::size_t names = 6, longest_text = 1;
  for (const HeatCell& of : map.cells) longest_text = std::max(longest_text, letters(of.text));
  // The names of rows get the space that the numbers leave.
  const double numbers = static_cast<double>(map.columns.size()) * (digit * static_cast<double>(longest_text) + 3);
  const auto longest_name = static_cast<std::size_t>(std::clamp((width - 8 - numbers) / wide_letter, 20.0, 32.0));
  for (const std::string& name : map.rows) names = std::max(names, std::min(letters(name), longest_name));
  const double left = 8 + wide_letter * static_cast<double>(names);
  const double cell =
      std::min(widest, (width - left) / static_cast<double>(std::max<std::size_t>(map.columns.size(), 1)));
  // Numbers are never shortened. If the numbers do not fit into the cells, only colours and hover texts show the
  // values.
  const bool with_text = digit * static_cast<double>(longest_text) <= cell - 2;
  const auto fits = [&](const std::string& text, double room) {
    return digit * static_cast<double>(letters(text)) <= room;
  };
  double y = 14;
  std::string body;
  if (!map.title.empty()) body += text_at(0, y, "start", strong, shortened(map.title, 60)), y += 24;
  body += text_at(left, y, "start", quiet, map.columns_title);
  const auto head = [&](std::size_t from, std::size_t to, const std::string& text) {
    if (fits(text, cell * static_cast<double>(to - from)))
      body += text_at(left + cell * static_cast<double>(from + to) / 2, y, "middle", quiet, text);
  };
  for (const auto line : {&HeatMap::Head::first, &HeatMap::Head::second}) {
    if (std::ranges::all_of(map.columns, [&](const auto& c) { return (c.*line).empty(); })) continue;
    y += 19;
    for (std::size_t from = 0, to = 0; from < map.columns.size(); from = to) {
      for (to = from + 1; line == &HeatMap::Head::first && to < map.columns.size() &&
                          map.columns[to].first == map.columns[from].first;)
        ++to;
      head(from, to, map.columns[from].*line);
    }
  }
  y += 7;
  for (std::size_t r = 0; r < map.rows.size(); ++r, y += row_height) {
    std::string row = text_at(left - 6, y + row_height / 2 + 4.5, "end", "", shortened(map.rows[r], longest_name));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& of = map.cells[r * map.columns.size() + c];
      if (of.text.empty()) continue;
      const double x = left + cell * static_cast<double>(c);
      row += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" style="{}" fill="currentColor" fill-opacity="{:.3f}"/>)",
          x + 1, y + 1, cell - 2, row_height - 2, of.crossed ? "color:var(--bad,#a3231f)" : colour_of(0),
          of.crossed ? 0.14 : 0.05 + 0.44 * std::clamp(of.strength, 0.0, 1.0));
      if (with_text)
        row += text_at(x + cell / 2, y + row_height / 2 + 4.5, "middle", of.strength > 0.02 && !of.crossed ? "" : quiet,
                       of.text);
      row += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="transparent"><title>{}</title></rect>)",
          x, y, cell, row_height, escape_markup(of.title));
    }
    body += fmt::format("<g{}>{}</g>", belongs_to(map.rows[r]), row);
  }
  for (std::string rest = map.legend; !rest.empty();) {  // wraps the legend into lines that fit into the width
    std::string line = rest;
    if (letters(rest) > 68) line = rest.substr(0, rest.rfind(' ', 68));
    y += 18;
    body += text_at(0, y, "start", quiet, line);
    rest = rest.size() > line.size() ? rest.substr(line.size() + 1) : "";
  }
  return chart(y + 8, map.title + ": " + map.legend, body);
}

}  // namespace plumb::lab
