// What one run of deep_mlp leaves behind: a line of metrics.jsonl, from which everything else is computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/jacobian.h"

namespace plumb::lab {

// One training: a method at a depth, under a seed.
struct MlpArm {
  std::string method;
  std::int64_t depth = 0;
  std::uint64_t seed = 0;

  std::string label() const;  // "rezero depth 64 seed 0"
  bool operator==(const MlpArm&) const = default;
};

struct MlpRecord {
  MlpArm arm;
  bool diverged = false;       // loss, gradient or the Jacobian at the end is not finite; the run ended there
  std::vector<double> losses;  // nats a sample, of every step taken
  JacobianMeasure start;       // of the hidden layers before the first step
  JacobianMeasure end;         // of the whole network, images to logits, after the last; NaN when diverged
  double seconds = 0;          // of the training steps

  // Mean loss over the steps of an epoch, counted from 1, as far as it was trained; NaN if it was not begun or the run diverged in it.
  double epoch_loss(std::int64_t epoch, std::int64_t steps_per_epoch) const;
  double last_loss() const;  // mean over the last 20 steps; NaN when diverged
};

std::string format_record(const MlpRecord& record);  // one JSON object and a line end
// A whole file back. Throws Error with file and line unless the text is what format_record writes.
std::vector<MlpRecord> parse_records(std::string_view text, const std::string& file);

// results.csv: a row an arm; a number that is not finite is an empty cell.
std::string format_mlp_results(const std::vector<MlpRecord>& records);

// Which epochs the table shows: 1, 2, 3, 5 and 10, as far as `steps` reach.
std::vector<std::int64_t> shown_epochs(std::int64_t steps, std::int64_t steps_per_epoch);

// For a terminal: a line for each method at each depth, means over seeds with 95 % t intervals.
std::string mlp_table(const std::vector<MlpRecord>& records, std::int64_t steps, std::int64_t steps_per_epoch);

}  // namespace plumb::lab
