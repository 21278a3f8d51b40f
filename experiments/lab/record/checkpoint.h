// The checkpoint of a trial: the state of the trial between two steps, as a safetensors file.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "experiments/lab/record/record.h"
#include "nn/io/safetensors.h"

namespace plumb::lab {

// The state of a trial between two steps.
struct TrialCheckpoint {
  std::string key, code;     // key of the trial and hash of the code, as in LedgerEntry
  std::string machine = {};  // the machine that has computed the trial so far
  std::int64_t step = 0;     // number of the next step
  Record record = {};        // the record of the trial up to `step`
  // The values of DivergenceWatch::recent() and recent_entropies().
  std::deque<double> recent = {}, entropies = {};
  std::map<double, std::int64_t> reached = {};  // the value of LossLevels::reached()
  nn::NamedTensors tensors = {};                // the value of nn::training_state()
};

// Writes a checkpoint. Throws Error if the file cannot be written; an earlier file of this name then stays unchanged.
void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint);
// Reads a checkpoint. Throws Error if write_checkpoint() did not write the file or if a bit of the file has changed.
TrialCheckpoint read_checkpoint(const std::filesystem::path& file);

// The checksum of the file of a checkpoint: a hash of all tensors and of all metadata except the checksum "sum".
std::string checksum_of_checkpoint(const nn::TensorFile& file);

}  // namespace plumb::lab
