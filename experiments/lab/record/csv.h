// Records as files for people: results.csv and metrics.jsonl, and tables of a study's own.
//
// Finite doubles survive a round trip exactly; a number that is not finite is an empty cell in CSV and null in JSON,
// never NaN.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// One row each, under a header: the axes, status, steps ("steps_taken" where an axis is called steps), seconds unless
// it is among `columns`, `columns`, then every other name that was measured. Text with a comma, a quote or a line end
// is quoted as RFC 4180 has it.
std::string results_csv(const std::vector<std::string>& axes, const std::vector<std::string>& columns,
                        const std::vector<Record>& records);
// One object a line: where the trial is, then what it logged.
std::string metrics_jsonl(const std::vector<Record>& records);

// For files of a study's own: a table in CSV from its header and cells. Text is quoted as above.
class CsvTable {
 public:
  explicit CsvTable(const std::vector<std::string>& header);
  CsvTable& cell(std::string_view text);
  CsvTable& cell(std::int64_t value);
  CsvTable& cell(double value);
  CsvTable& cells(const Point& point);
  void end_row();
  std::string text() const { return text_; }

 private:
  void separate();
  std::string text_;
  bool row_begins_ = true;
};

}  // namespace plumb::lab
