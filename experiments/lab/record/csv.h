// Writes records as results.csv and metrics.jsonl, and tables of a study as CSV.
//
// A finite double is written with enough digits to be read back exactly. A number that is not finite becomes an empty
// cell in CSV and null in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// The content of results.csv: a header, and one row for each record. The columns are, in this order: the axes, status,
// steps (named "steps_taken" if an axis has the name steps), seconds (unless `columns` contains seconds), `columns`,
// and all other measured names. Text with a comma, a quote or a line end is quoted as in RFC 4180.
std::string results_csv(const std::vector<std::string>& axes, const std::vector<std::string>& columns,
                        const std::vector<Record>& records);
// The content of metrics.jsonl: one line for each logged step of each record. A line is a JSON object with the point of
// the trial and then the values of the step.
std::string metrics_jsonl(const std::vector<Record>& records);

// Builds a CSV table cell by cell. Text is quoted as in results_csv().
class CsvTable {
 public:
  explicit CsvTable(const std::vector<std::string>& header);
  // Each of these functions appends a cell to the present row. A double that is not finite gives an empty cell.
  CsvTable& cell(std::string_view text);
  CsvTable& cell(std::int64_t value);
  CsvTable& cell(double value);
  // Appends the value of the point on each axis; an empty cell if the point has no value there.
  CsvTable& cells(const Point& point, const std::vector<std::string>& axes);
  void end_row();                             // ends the present row
  std::string text() const { return text_; }  // the text of the table so far

 private:
  void separate();
  std::string text_;
  bool row_begins_ = true;
};

}  // namespace plumb::lab
