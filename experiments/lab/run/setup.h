// What an experiment sets up before its first run: threads, dtype and device, data.
#pragma once

#include "core/array.h"
#include "core/precision.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/run_options.h"
#include "experiments/lab/run/folder.h"

namespace plumb::lab {

// What products run in under --dtype; of bf16, stderr gets by which instructions.
Precision precision_for(const std::string& dtype, Device device);
Precision precision_of(const std::string& dtype);  // the same without a word
Defaults defaults_for(const RunOptions& options);
// Throws an Error that says what cuda lacks, if it does; for another name than those of RunChoices too.
Device device_named(const std::string& name);
// cuda, where it can be used, else cpu; stderr gets a line that says what is missing.
Device best_device();

class Setup {
 public:
  // Errors: open_data, split, a batch larger than the training set.
  explicit Setup(const RunOptions& options);

 private:
  DefaultsScope defaults_;  // of the thread that made it, while it lives
  PrecisionScope precision_;

 public:
  const ImageData data;
  const Normalization normalization;
  const Machine machine;
  const std::string arithmetic;  // of the machine, what may decide bits: processor and instruction set, without the number of threads
  const DataFacts facts;
};

}  // namespace plumb::lab
