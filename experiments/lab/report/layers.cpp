#include "experiments/lab/report/layers.h"

#include "experiments/lab/record/csv.h"
#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {
namespace {

std::string csv_of(const StudyResults& results, const std::vector<std::string>& columns) {
  std::vector<std::string> header = results.axes;
  header.insert(header.end(), {"step", "block", "branch"});
  header.insert(header.end(), columns.begin(), columns.end());
  CsvTable table(header);
  for (std::size_t i = 0; i < results.records.size(); ++i)
    for (const auto& [step, layers] : results.attached[i].layers)
      for (const BranchStats& row : layers.branches) {
        table.cells(results.records[i].point, results.axes).cell(step).cell(row.block);
        table.cell(std::string_view(row.branch));
        for (const std::string& column : columns) table.cell(value_of(row, column));
        table.end_row();
      }
  return table.text();
}

}  // namespace

std::string layers_csv(const StudyResults& results) {
  return csv_of(results, {"stream_norm", "branch_norm", "ratio", "gate_mean", "gate_max", "grad_norm", "drop_ratio",
                          "empty_rows", "change"});
}

std::string all_layers_csv(const StudyResults& results) { return csv_of(results, branch_columns()); }

}  // namespace plumb::lab
