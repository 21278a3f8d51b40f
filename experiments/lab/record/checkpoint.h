// The checkpoint of a trial: its state between two steps, as a safetensors file.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "experiments/lab/record/record.h"
#include "nn/named_tensors.h"

namespace plumb::lab {

// The state of a trial between two steps.
struct TrialCheckpoint {
  std::string key, code;           // of the trial, as in LedgerEntry
  std::string machine = {};        // the machine that computed the trial so far
  std::int64_t step = 0;           // the next step
  Record record = {};              // the record of the steps so far
  std::deque<double> recent = {};  // DivergenceWatch::recent()
  nn::NamedTensors tensors = {};   // "model.*", "optimizer.*", "ema.*"
};

// Writes a checkpoint. Throws Error if the file cannot be written; an earlier file then stays unchanged.
void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint);
// Reads a checkpoint. Throws Error if the file was not written by write_checkpoint or if any of its bits has changed.
TrialCheckpoint read_checkpoint(const std::filesystem::path& file);

// Returns the tensors whose names begin with "<part>.", without this prefix.
nn::NamedTensors part_of(const nn::NamedTensors& tensors, const std::string& part);
// Adds the tensors `of_part` to `tensors`, with the prefix "<part>.".
void add_part(nn::NamedTensors& tensors, const std::string& part, const nn::NamedTensors& of_part);

}  // namespace plumb::lab
