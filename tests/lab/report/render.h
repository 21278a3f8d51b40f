// Renders a report from trials, and logs values of trials.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/report.h"
#include "experiments/lab/signals/probe_json.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::test {

// The record of a trial of `results`.
inline lab::Record& record_of(lab::StudyResults& results, std::size_t trial) {
  results.records.resize(std::max(results.records.size(), trial + 1));
  return results.records[trial];
}

// Logs a traced loss of a trial.
inline void log_loss(lab::StudyResults& results, std::size_t trial, std::int64_t step, double loss) {
  record_of(results, trial).metrics.push_back({.step = step, .values = {{"loss", loss}}});
}

// Attaches the statistics of the branches of a network to a trial.
inline void log_layers(lab::StudyResults& results, std::size_t trial, std::int64_t step,
                       std::vector<lab::BranchStats> branches) {
  record_of(results, trial)
      .attachments.push_back(
          nlohmann::ordered_json{
              {"step", step}, {"passport", to_json(lab::LayerStats{.sample = {1}, .branches = std::move(branches)})}}
              .dump());
}

// The report with verdicts on its trials.
inline lab::Report render(lab::StudyResults results) {
  for (const lab::Record& record : results.records) results.attached.push_back(lab::attached_to(record));
  results.conditions = lab::conditions(results.trials, results.judging);
  return lab::results_report(results);
}

}  // namespace plumb::test
