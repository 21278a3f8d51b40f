// A table of text cells, as text for a terminal, as Markdown and as HTML.
#pragma once

#include <string>
#include <vector>

namespace plumb::lab {

// A table of text cells.
class TextTable {
 public:
  // The alignment of a column.
  enum class Align { left, right };

  void column(const std::string& title, Align align);  // appends a column; must be called before row()
  // Appends a row with one cell for each column. `colour` is the ANSI code of the last cell, such as "31"; "" means no
  // colour.
  void row(std::vector<std::string> cells, const std::string& colour = "");

  // The table for a terminal. A column is as wide as its widest cell, and two spaces separate the columns. If `colour`
  // is true, the header is bold and the last cells have the colours of their rows.
  std::string text(bool colour) const;
  std::string markdown() const;                 // the table as Markdown, with "\|" for "|"
  std::string html() const;                     // the table as a <table> element with the class of the report
  bool empty() const { return rows_.empty(); }  // whether the table has no rows

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string colour;
  };
  std::vector<std::string> titles_;
  std::vector<Align> aligns_;
  std::vector<Row> rows_;
};

}  // namespace plumb::lab
