#include "experiments/lab/record/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::lab {

std::string results_csv(const std::vector<std::string>& axes, const std::vector<std::string>& columns,
                        const std::vector<Record>& records) {
  std::vector<std::string> names = columns;
  if (std::ranges::find(names, "seconds") == names.end()) names.insert(names.begin(), "seconds");
  for (const std::string& name : measured_names(records))
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::vector<std::string> header = axes;
  const bool planned = std::ranges::find(axes, "steps") != axes.end();
  header.insert(header.end(), {"status", planned ? "steps_taken" : "steps"});
  header.insert(header.end(), names.begin(), names.end());
  CsvTable table(header);
  for (const Record& r : records) {
    table.cells(r.point, axes).cell(std::string_view(enum_name(r.status))).cell(r.steps);
    for (const std::string& name : names) table.cell(r.value(name));
    table.end_row();
  }
  return table.text();
}

std::string metrics_jsonl(const std::vector<Record>& records) {
  std::string text;
  for (const Record& r : records) {
    // Joins the two JSON objects {"gate":"pre",...,"seed":0} and {"step":0,...} into one object.
    const std::string trial = to_json(r.point);
    for (const StepValues& step : r.metrics)
      text += trial.substr(0, trial.size() - 1) + "," + to_json(step, r.status).substr(1) + "\n";
  }
  return text;
}

CsvTable::CsvTable(const std::vector<std::string>& header) {
  for (const std::string& name : header) cell(name);
  end_row();
}

void CsvTable::separate() {
  if (!std::exchange(row_begins_, false)) text_ += ',';
}

CsvTable& CsvTable::cell(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += text;
    return *this;
  }
  text_ += '"';
  for (const char c : text) text_ += c == '"' ? std::string("\"\"") : std::string(1, c);
  text_ += '"';
  return *this;
}

CsvTable& CsvTable::cell(std::int64_t value) {
  separate();
  text_ += fmt::format("{}", value);
  return *this;
}

CsvTable& CsvTable::cell(double value) {
  separate();
  if (std::isfinite(value)) text_ += fmt::format("{}", value);
  return *this;
}

CsvTable& CsvTable::cells(const Point& point, const std::vector<std::string>& axes) {
  for (const std::string& axis : axes) {
    const AxisValue* value = point.find(axis);
    cell(std::string_view(value ? to_string(*value) : ""));
  }
  return *this;
}

void CsvTable::end_row() {
  text_ += '\n';
  row_begins_ = true;
}

}  // namespace plumb::lab
