// The state of a trial between two steps, as a safetensors file: what it trains, and what it has left behind so far.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "experiments/lab/record/record.h"
#include "nn/named_tensors.h"

namespace plumb::lab {

struct TrialCheckpoint {
  std::string key, code;           // of the trial, as in LedgerEntry
  std::string machine = {};        // that computed it
  std::int64_t step = 0;           // the next one
  Record record = {};              // so far
  std::deque<double> recent = {};  // DivergenceWatch's
  nn::NamedTensors tensors = {};   // "model.*", "optimizer.*", "ema.*"
};

// Throws Error if the file cannot be written; the former one then is as it was.
void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint);
// Throws Error unless the file is one that write_checkpoint wrote, to the last bit.
TrialCheckpoint read_checkpoint(const std::filesystem::path& file);

// The tensors whose names begin with "<part>.", without it; and the other way round.
nn::NamedTensors part_of(const nn::NamedTensors& tensors, const std::string& part);
void add_part(nn::NamedTensors& tensors, const std::string& part, const nn::NamedTensors& of_part);

}  // namespace plumb::lab
