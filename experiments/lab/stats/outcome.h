// The trials of a study as its report sees them: methods at depths and learning rates, over seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// How one trial ended. Losses are nats a sample, accuracy is a fraction in [0, 1]; absent where the trial did not get
// that far.
struct TrialResult {
  std::string method = {};  // all that is neither depth nor rate nor seed
  std::int64_t depth = 0;   // 0 where the study has no such axis
  double lr = 0;            // likewise
  std::uint64_t seed = 0;
  Status status = Status::ok;
  std::int64_t steps = 0;  // optimizer steps taken
  std::optional<double> train_loss = {}, val_loss = {}, val_accuracy = {};
  std::optional<std::int64_t> diverged_at = {};  // step
  std::vector<double> further = {};              // of ReportInput::columns
};

// One logged step of one trial. A measurement that was not finite, or not logged, is NaN.
struct LossPoint {
  std::string method = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  double loss = unknown;
};

// One residual branch of one block at one logged step of one trial; a norm is NaN where it was not finite. The gate's
// factors are absent for a gate without any.
struct LayerPoint {
  std::string method = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t block = 0;   // 0 is next to the input
  std::string branch = {};  // "attn" or "mlp"
  double ratio = unknown;
  std::optional<double> gate_max = {};
};

}  // namespace plumb::lab
