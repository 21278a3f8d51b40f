// A table for a terminal, in Markdown or in HTML.
#pragma once

#include <string>
#include <vector>

namespace plumb::lab {

class TextTable {
 public:
  enum class Align { left, right };
  void column(const std::string& title, Align align);
  // As many cells as columns. `colour` is an ANSI code for the last one, such as "31"; "": none.
  void row(std::vector<std::string> cells, const std::string& colour = "");

  // Columns as wide as their widest cell, two spaces apart; a bold header and the rows' colours if asked.
  std::string text(bool colour) const;
  std::string markdown() const;
  std::string html() const;  // a <table> of the report's class
  bool empty() const { return rows_.empty(); }

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
