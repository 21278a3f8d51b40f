#include "experiments/common/heat_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/common/plot_text.h"
#include "experiments/common/svg_parts.h"

namespace plumb::lab {

using namespace svg;

std::string render_svg(const HeatMap& map) {
  check(map.cells.size() == map.rows.size() * map.columns.size(), "[heat_map] expected {} x {} cells, got {}", map.rows.size(), map.columns.size(),
        map.cells.size());
  constexpr double row_height = 21, widest = 92;
  constexpr std::size_t longest_name = 20;
  std::size_t names = letters(map.rows_title);
  for (const std::string& name : map.rows) names = std::max(names, std::min(letters(name), longest_name));
  const double left = 8 + wide_letter * static_cast<double>(names);
  const double cell = std::min(widest, (width - left) / static_cast<double>(std::max<std::size_t>(map.columns.size(), 1)));
  const std::size_t fitting = static_cast<std::size_t>(std::max(1.0, (cell - 4) / letter));
  double y = 14;
  std::string body;
  if (!map.title.empty()) body += text_at(0, y, "start", strong, shortened(map.title, 60)), y += 24;
  body += text_at(left, y, "start", quiet, map.columns_title);
  y += 19;
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    body += text_at(left + cell * (static_cast<double>(c) + 0.5), y, "middle", quiet, shortened(map.columns[c], fitting));
  y += 7;
  for (std::size_t r = 0; r < map.rows.size(); ++r, y += row_height) {
    std::string row = text_at(left - 6, y + row_height / 2 + 4.5, "end", "", shortened(map.rows[r], longest_name));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& of = map.cells[r * map.columns.size() + c];
      if (of.text.empty()) continue;
      const double x = left + cell * static_cast<double>(c);
      row += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" style="{}" fill="currentColor" fill-opacity="{:.3f}"/>)",
                         x + 1, y + 1, cell - 2, row_height - 2, of.crossed ? "color:var(--bad,#a3231f)" : colour_of(0),
                         of.crossed ? 0.14 : 0.05 + 0.5 * std::clamp(of.strength, 0.0, 1.0));
      row += text_at(x + cell / 2, y + row_height / 2 + 4.5, "middle", of.strength > 0.02 && !of.crossed ? "" : quiet, shortened(of.text, fitting));
      row += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="transparent"><title>{}</title></rect>)", x, y, cell,
                         row_height, escape_markup(of.title));
    }
    body += fmt::format("<g{}>{}</g>", belongs_to(map.rows[r]), row);
  }
  for (std::string rest = map.legend; !rest.empty();) {  // in lines that fit
    std::string line = rest;
    if (letters(rest) > 68) line = rest.substr(0, rest.rfind(' ', 68));
    y += 18;
    body += text_at(0, y, "start", quiet, line);
    rest = rest.size() > line.size() ? rest.substr(line.size() + 1) : "";
  }
  return chart(y + 8, map.title + ": " + map.legend, body);
}

}  // namespace plumb::lab
