// Renders a report from trials, and logs values of trials.
#pragma once

#include <algorithm>

#include "experiments/lab/report/report.h"
#include "experiments/lab/signals/layer_probe.h"
#include "tests/lab/stats/trial_result.h"

namespace plumb::test {

// The record of a trial of `results`.
inline lab::Record& record_of(lab::StudyResults& results, std::size_t trial) {
  results.records.resize(std::max(results.records.size(), trial + 1));
  results.attached.resize(results.records.size());
  return results.records[trial];
}

// Logs a traced loss of a trial.
inline void log_loss(lab::StudyResults& results, std::size_t trial, std::int64_t step, double loss) {
  record_of(results, trial).metrics.push_back({.step = step, .values = {{"loss", loss}}});
}

// Adds the statistics of the branches of a network to a trial.
inline void log_layers(lab::StudyResults& results, std::size_t trial, std::int64_t step,
                       std::vector<lab::BranchStats> branches) {
  record_of(results, trial);
  results.attached[trial].layers.push_back({step, {.sample = {1}, .branches = std::move(branches)}});
}

// The report with verdicts on its trials.
inline lab::Report render(lab::StudyResults results) {
  prepare(results.trials, results.judging);
  if (lab::has_training_losses(results.trials)) results.conditions = lab::conditions(results.groups(), results.judging);
  return lab::results_report(results);
}

}  // namespace plumb::test
