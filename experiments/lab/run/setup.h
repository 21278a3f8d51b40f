// What an experiment sets up before its first run: threads, dtype and device, data.
#pragma once

#include "core/array.h"
#include "core/precision.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

Defaults defaults_for(const StudyOptions& options);

class Setup {
 public:
  // Errors: open_data, split, a batch larger than the training set.
  explicit Setup(const StudyOptions& options);

 private:
  DefaultsScope defaults_;  // of the thread that made it, while it lives
  PrecisionScope precision_;

 public:
  const ImageData data;
  const Normalization normalization;
  const Machine machine;
  const std::string
      arithmetic;  // of the machine, what may decide bits: processor and instruction set, without the number of threads
  const DataFacts facts;
};

}  // namespace plumb::lab
