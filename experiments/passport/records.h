// The records of the passport program. Each trial attaches one record for each passport. Tables, files and report are
// computed from the records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// One network, identified by method, depth and seed.
struct PassportArm {
  std::string gate;
  std::int64_t depth = 0;
  std::uint64_t seed = 0;

  std::string label() const;  // "layerscale depth 48 seed 0"
  bool operator==(const PassportArm&) const = default;
};

// The passport of one network at one step. Step 0 is the fresh network.
struct PassportRecord {
  PassportArm trial;
  std::int64_t step = 0;
  double loss = 0, grad_norm = 0;
  std::string divergence = {};  // step and reason of a divergence; only in the last record of a diverged trial
  LayerStats passport = {};
  std::optional<JacobianMeasure> jacobian = {};  // only for a fresh network whose Jacobian was measured

  std::vector<std::string> findings() const;  // the warnings of a fresh network; empty for other networks
};

// Numbers of one block, computed from its branches.
struct BlockFigures {
  double ratio;      // mean over the branches
  double grad_norm;  // L2 norm of the gradients over all branches
};
BlockFigures block_figures(const LayerStats& passport, std::int64_t block);

std::string to_json(const PassportRecord& record);  // one JSON object, without the trial and the divergence
// The records of all trials of a study, in order. Numbers that were not finite become NaN.
std::vector<PassportRecord> passport_records(const StudyResults& results);

// The text of passport.csv: one row per branch and step. Absent and non-finite numbers are empty cells.
std::string format_passports(const std::vector<PassportRecord>& records);

// The records of one method and depth at one moment, with one record for each seed.
struct PassportGroup {
  std::string gate;
  std::int64_t depth = 0;
  std::vector<const PassportRecord*> seeds = {};
};
// `fresh` is the network before training. `last` is the last step of each network; a network whose last step is 0 is
// left out.
enum class Moment { fresh, last };
// Groups the records by method and depth. The groups are in order of ascending depth, then in order of first
// appearance. The groups hold pointers into `records`.
std::vector<PassportGroup> passport_groups(const std::vector<PassportRecord>& records, Moment moment);

// The numbers of one table row, as geometric means over the seeds.
struct PassportSummary {
  double mean_square, predicted;  // mean squares of the stream after the last branch, measured and predicted
  // `ratio` has the first, middle and last block; `grad_norm` has the first and last block.
  double ratio[3], grad_norm[2];
  double loss;
  double entropy, largest_logit;  // lowest relative entropy and largest logit of all blocks; NaN if absent
  // The mean over the seeds, and its error. The error is the larger of the estimate's standard error and the standard
  // error over seeds.
  std::optional<double> jacobian, jacobian_error;
  std::vector<std::string> findings;  // findings of all seeds, without duplicates
};
PassportSummary summarize(const PassportGroup& group);

// The table for a terminal, at most 100 columns wide, with the findings below it.
std::string passport_table(const std::vector<PassportRecord>& records, bool colour);

}  // namespace plumb::lab
