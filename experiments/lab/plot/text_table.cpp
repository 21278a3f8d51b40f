#include "experiments/lab/plot/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/lab/plot/text.h"

namespace plumb::lab {

void TextTable::column(const std::string& title, Align align) {
  titles_.push_back(title);
  aligns_.push_back(align);
}

void TextTable::row(std::vector<std::string> cells, const std::string& colour) {
  check(cells.size() == titles_.size(), "[table] expected a cell for each of the columns {}, got {} cells",
        fmt::join(titles_, ", "), cells.size());
  rows_.push_back({std::move(cells), colour});
}

std::string TextTable::text(bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < titles_.size(); ++c) {
    widths.push_back(letters(titles_[c]));
    for (const Row& row : rows_) widths[c] = std::max(widths[c], letters(row.cells[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells, const std::string& last_colour) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool last = c + 1 == cells.size();
      const std::string gap(widths[c] - letters(cells[c]), ' ');
      std::string cell = aligns_[c] == Align::right ? gap + cells[c] : cells[c];
      if (last && !last_colour.empty()) cell = "\x1b[" + last_colour + "m" + cell + "\x1b[0m";
      text += (c > 0 ? "  " : "") + cell + (aligns_[c] == Align::left && !last ? gap : "");
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string text = (colour ? "\x1b[1m" + line(titles_, "") + "\x1b[0m" : line(titles_, "")) + "\n";
  for (const Row& row : rows_) text += line(row.cells, colour ? row.colour : "") + "\n";
  return text;
}

std::string TextTable::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (std::string cell : cells) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != cell.npos; at += 2) cell.insert(at, 1, '\\');
      text += " " + cell + " |";
    }
    return text + "\n";
  };
  std::vector<std::string> rules;
  for (const Align align : aligns_) rules.emplace_back(align == Align::right ? "---:" : "---");
  std::string text = line(titles_) + line(rules);
  for (const Row& row : rows_) text += line(row.cells);
  return text;
}

std::string TextTable::html() const {
  const auto class_of = [&](std::size_t c) { return aligns_[c] == Align::right ? " class=\"num\"" : ""; };
  // In bytes, which are about as many as letters. A longer text may be wrapped over several lines.
  constexpr std::size_t one_line = 36;
  std::string html = "<table class=\"results\"><thead><tr>";
  for (std::size_t c = 0; c < titles_.size(); ++c)
    html += fmt::format("<th{}>{}</th>", class_of(c), escape_markup(titles_[c]));
  html += "</tr></thead><tbody>";
  for (const Row& row : rows_) {
    html += "<tr>";
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      html += fmt::format("<td{}>{}</td>",
                          aligns_[c] == Align::left && row.cells[c].size() > one_line ? " class=\"long\"" : class_of(c),
                          escape_markup(row.cells[c]));
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

}  // namespace plumb::lab
