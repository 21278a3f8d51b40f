// A table of text cells that can be printed for a terminal, as Markdown and as HTML.
#pragma once

#include <string>
#include <vector>

namespace plumb::lab {

// A table of text cells.
class TextTable {
 public:
  // Alignment of a column.
  enum class Align { left, right };

  void column(const std::string& title, Align align);  // appends a column; call it before row()
  // Appends a row, with one cell for each column. `colour` is the ANSI code of the last cell, such as "31"; "": none.
  void row(std::vector<std::string> cells, const std::string& colour = "");

  // The table for a terminal, with columns as wide as their widest cell and two spaces between them. With `colour`, the
  // header is bold and the rows have their colours.
  std::string text(bool colour) const;
  std::string markdown() const;                 // the table as Markdown
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
