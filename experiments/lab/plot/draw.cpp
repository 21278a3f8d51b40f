#include "experiments/lab/plot/draw.h"

#include "experiments/lab/record/csv.h"
#include "experiments/lab/record/record.h"

namespace plumb::lab {

std::string standalone(std::string_view svg) {
  constexpr std::string_view open = "<svg ";
  return std::string(open) + "style=\"background:#fff;color:#1b1f23;font-family:system-ui,sans-serif\" " +
         std::string(svg.substr(open.size())) + "\n";
}

Figure figure_of(const Plot& plot) {
  CsvTable table({"series", "kind", "x", "y", "low", "high"});
  const auto row = [&](const std::string& series, std::string_view kind, const PlotPoint& p) {
    table.cell(std::string_view(series)).cell(kind).cell(p.x).cell(p.y).cell(p.low).cell(p.high).end_row();
  };
  for (const PlotSeries& s : plot.series)
    for (const PlotPoint& p : s.points) row(s.name, s.kind, p);
  for (const PlotMark& m : plot.marks)
    row(m.of, plot.marks_name.empty() ? "mark" : plot.marks_name, {.x = m.x, .y = m.y});
  return {plot.id, render_svg(plot), table.text()};
}

Figure figure_of(const DotPlot& plot) {
  CsvTable table({"name", "kind", "value", "low", "high", "note"});
  for (const DotRow& r : plot.rows) {
    table.cell(std::string_view(r.name)).cell(std::string_view("mean")).cell(r.dot.x).cell(r.dot.low).cell(r.dot.high);
    table.cell(std::string_view(r.note)).end_row();
    for (const double v : r.singles)
      table.cell(std::string_view(r.name))
          .cell(std::string_view("single"))
          .cell(v)
          .cell(unknown)
          .cell(unknown)
          .cell(std::string_view())
          .end_row();
  }
  return {plot.id, render_svg(plot), table.text()};
}

Figure figure_of(const HeatMap& map) {
  CsvTable table({"row", "depth", "lr", "value", "text"});
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& cell = map.cells[r * map.columns.size() + c];
      if (cell.text.empty()) continue;
      table.cell(std::string_view(map.rows[r]))
          .cell(std::string_view(map.columns[c].first))
          .cell(std::string_view(map.columns[c].second))
          .cell(cell.value)
          .cell(std::string_view(cell.text));
      table.end_row();
    }
  return {map.id, render_svg(map), table.text()};
}

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

}  // namespace plumb::lab
