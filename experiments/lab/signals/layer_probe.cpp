#include "experiments/lab/signals/layer_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {

AroundStep passports(Arm& arm, const nn::Stack& stack, std::int64_t count) {
  const std::int64_t interval = std::max<std::int64_t>(1, arm.steps() / count);
  return [&arm, &stack, interval](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % interval != 0 && step + 1 != arm.steps()) return nullptr;
    return [&arm, step, probe = std::make_shared<PassportProbe>(stack)](const Gradients& g) {
      arm.attach(fmt::format(R"({{"step":{},"passport":{}}})", step, to_json(probe->finish(g))));
    };
  };
}

std::vector<StepPassport> passports_of(const Record& record) {
  std::vector<StepPassport> found;
  for (const std::string& text : record.attachments) {
    const auto json = nlohmann::json::parse(text);
    if (json.contains("passport")) found.push_back({json.at("step"), passport_from_json(json.at("passport").dump())});
  }
  return found;
}

std::string layers_csv(const StudyResults& results) {
  std::vector<std::string> header = results.axes;
  const std::vector<std::string> columns{"stream_norm", "branch_norm", "ratio",      "gate_mean", "gate_max",
                                         "grad_norm",   "drop_ratio",  "empty_rows", "change"};
  header.insert(header.end(), {"step", "block", "branch"});
  header.insert(header.end(), columns.begin(), columns.end());
  CsvTable table(header);
  for (const Record& record : results.records)
    for (const auto& [step, passport] : passports_of(record))
      for (const BranchPassport& row : passport.branches) {
        table.cells(record.point).cell(step).cell(row.block).cell(std::string_view(row.branch));
        for (const std::string& column : columns) table.cell(value_of(row, column));
        table.end_row();
      }
  return table.text();
}

std::vector<LayerPoint> layer_points(const StudyResults& results) {
  std::vector<LayerPoint> points;
  const std::vector<ArmResult> arms = arm_results(results);
  for (std::size_t i = 0; i < results.records.size(); ++i)
    for (const auto& [step, passport] : passports_of(results.records[i]))
      for (const BranchPassport& row : passport.branches)
        points.push_back({arms[i].gate, arms[i].depth, arms[i].lr, arms[i].seed, step, row.block, row.branch, row.ratio, row.gate_max});
  return points;
}

}  // namespace plumb::lab
