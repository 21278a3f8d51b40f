// The records of the passport program. Each trial attaches one record per passport; tables, files and report are
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
  std::string divergence = {};  // only in the last record of a diverged trial: the step and the reason
  LayerStats passport = {};
  std::optional<JacobianMeasure> jacobian = {};  // only for the fresh network, if measured

  std::vector<std::string> findings() const;  // the warnings of a fresh network; otherwise empty
};

// Numbers of one block, computed from its two branches.
struct BlockFigures {
  double ratio;      // mean over the two branches
  double grad_norm;  // L2 norm over both branches
};
BlockFigures block_figures(const LayerStats& passport, std::int64_t block);
std::int64_t depth_of(const LayerStats& passport);

std::string to_json(const PassportRecord& record);  // one JSON object, without trial and divergence
// The records of all trials of a study, in order. Numbers that were not finite are read as NaN.
std::vector<PassportRecord> passport_records(const StudyResults& results);

// The text of passport.csv: one row per branch and step. Absent and non-finite numbers are empty cells.
std::string format_passports(const std::vector<PassportRecord>& records);

// The records of one method and depth at one moment, one for each seed.
struct PassportGroup {
  std::string gate;
  std::int64_t depth = 0;
  std::vector<const PassportRecord*> seeds = {};
};
enum class Moment { fresh, last };  // last: the last step of each network; left out if it is step 0
// Groups the records by method and depth: ascending depth, then in order of first appearance. The groups hold pointers
// into `records`.
std::vector<PassportGroup> passport_groups(const std::vector<PassportRecord>& records, Moment moment);

// The numbers of one table row: geometric means over the seeds.
struct PassportSummary {
  double mean_square, predicted;  // mean squares of the stream after the last branch
  double ratio[3], grad_norm[2];  // ratio: first, middle, last block; grad_norm: first, last block
  double loss;
  double entropy, largest_logit;  // lowest relative entropy and largest logit of all blocks; NaN if absent
  // The mean over the seeds; and the larger of the estimate's standard error and the standard error over seeds.
  std::optional<double> jacobian, jacobian_error;
  std::vector<std::string> findings;  // of all seeds, without duplicates
};
PassportSummary summarize(const PassportGroup& group);

// The table for a terminal, at most 100 columns wide, with the findings below it.
std::string passport_table(const std::vector<PassportRecord>& records, bool colour);

}  // namespace plumb::lab
