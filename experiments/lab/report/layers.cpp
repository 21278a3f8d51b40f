#include "experiments/lab/report/layers.h"

#include "experiments/lab/record/csv.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {

std::string layers_csv(const StudyResults& results) {
  std::vector<std::string> header = results.axes;
  const std::vector<std::string> columns{"stream_norm", "branch_norm", "ratio",      "gate_mean", "gate_max",
                                         "grad_norm",   "drop_ratio",  "empty_rows", "change"};
  header.insert(header.end(), {"step", "block", "branch"});
  header.insert(header.end(), columns.begin(), columns.end());
  CsvTable table(header);
  for (const Record& record : results.records)
    for (const auto& [step, passport] : passports_of(record))
      for (const BranchStats& row : passport.branches) {
        table.cells(record.point, results.axes).cell(step).cell(row.block).cell(std::string_view(row.branch));
        for (const std::string& column : columns) table.cell(value_of(row, column));
        table.end_row();
      }
  return table.text();
}

std::vector<LayerPoint> layer_points(const StudyResults& results) {
  std::vector<LayerPoint> points;
  const std::vector<TrialResult>& trials = results.trials;
  for (std::size_t i = 0; i < results.records.size(); ++i)
    for (const auto& [step, passport] : passports_of(results.records[i]))
      for (const BranchStats& row : passport.branches)
        points.push_back({trials[i].method, trials[i].depth(), trials[i].lr(), trials[i].seed(), step, row.block,
                          row.branch, row.ratio, row.gate_max});
  return points;
}

}  // namespace plumb::lab
