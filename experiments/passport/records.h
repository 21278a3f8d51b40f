// What the passport program leaves behind: an attachment of its trial for each passport, from which everything else is
// computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// One network.
struct PassportArm {
  std::string gate;
  std::int64_t depth = 0;
  std::uint64_t seed = 0;

  std::string label() const;  // "layerscale depth 48 seed 0"
  bool operator==(const PassportArm&) const = default;
};

// A passport of one network at one step; the one of step 0 is that of the fresh network.
struct PassportRecord {
  PassportArm trial;
  std::int64_t step = 0;
  double loss = 0, grad_norm = 0;
  std::string divergence = {};  // in the last one of a training that diverged: at which step and why
  LayerStats passport = {};
  std::optional<JacobianMeasure> jacobian = {};  // of the fresh network, where it was measured

  std::vector<std::string> findings() const;  // the warnings of a fresh network; none of another
};

// Figures of one block, from its two branches.
struct BlockFigures {
  double ratio;      // mean of the two
  double grad_norm;  // of the two together
};
BlockFigures block_figures(const LayerStats& passport, std::int64_t block);
std::int64_t depth_of(const LayerStats& passport);

std::string to_json(const PassportRecord& record);  // one JSON object, without trial and divergence
// All of a study, trial by trial. A number that was not finite is NaN.
std::vector<PassportRecord> passport_records(const StudyResults& results);

// passport.csv: a row a branch and step; a number that is absent or not finite is an empty cell.
std::string format_passports(const std::vector<PassportRecord>& records);

// The records of one gate and depth at one moment, over seeds.
struct PassportGroup {
  std::string gate;
  std::int64_t depth = 0;
  std::vector<const PassportRecord*> seeds = {};
};
enum class Moment { fresh, last };  // last: of each network; none where it is the fresh one
// By ascending depth, then in order of first appearance. The groups point into `records`.
std::vector<PassportGroup> passport_groups(const std::vector<PassportRecord>& records, Moment moment);

// One line of numbers a group; geometric means over seeds.
struct PassportSummary {
  double mean_square, predicted;  // of the stream after the last branch
  double ratio[3], grad_norm[2];  // first, middle, last block; first, last block
  double loss;
  double entropy, largest_logit;  // lowest relative entropy and largest logit of all blocks; NaN where there are none
  std::optional<double> jacobian,
      jacobian_error;                 // mean over seeds, with the larger of estimate's and seeds' standard error
  std::vector<std::string> findings;  // of all seeds, each once
};
PassportSummary summarize(const PassportGroup& group);

// The summary for a terminal, at most 100 columns wide, and the findings below it.
std::string passport_table(const std::vector<PassportRecord>& records, bool colour);

}  // namespace plumb::lab
