// What every experiment sets up before its first run: threads, dtype and device, data, and the run folder.
#pragma once

#include <memory>

#include "core/array.h"
#include "core/precision.h"
#include "experiments/common/data/image_set.h"
#include "experiments/common/run_folder.h"
#include "experiments/common/run_options.h"
#include "experiments/common/training_step.h"

namespace plumb::lab {

// What products run in under --dtype; of bf16, stderr gets by which instructions.
Precision precision_for(const std::string& dtype, Device device);

// Threads, dtype and device, and data.
class Setup {
 public:
  // Errors: open_data, split, a batch larger than the training set.
  explicit Setup(const RunOptions& options);

 private:
  DefaultsScope defaults_;  // while the setup lives
  PrecisionScope precision_;

 public:
  const ImageData data;
  const Normalization normalization;
  const Machine machine;

  // For run.json and reports: "mnist, 60000 training images, 10000 validation images: the published test set; 10 classes".
  std::string data_text() const;
};

class Session : public Setup {
 public:
  // The setup comes first: a set that is missing or smaller than --batch leaves no folder behind. Errors: Setup, RunFolder.
  Session(const Cli& cli, const RunOptions& options);

  // To be called last, in the thread of the runs. Tells on stderr what --profile found, and how to go on if an interrupt left some of `runs`
  // unfinished; returns the status to exit with then, 0 otherwise.
  int finish(std::size_t finished, std::size_t runs, const char* what) const;

  const RunFolder folder;

 private:
  std::unique_ptr<StepProfile> profile_;  // if asked for
};

}  // namespace plumb::lab
