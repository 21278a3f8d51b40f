// The parts that a study sets up before its first trial: threads, dtype, device and data.
#pragma once

#include "core/array.h"
#include "core/precision.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// The default dtype and the default device that --dtype and --device select.
Defaults defaults_for(const StudyOptions& options);

// The data, the machine and the defaults that all trials of a call share.
class Setup {
 public:
  // Throws the errors of open_data() and of the validation split. Throws Error if the batch is larger than the training
  // set, or if no validation images are left.
  explicit Setup(const StudyOptions& options);

 private:
  DefaultsScope defaults_;  // sets the defaults of the calling thread while this object exists
  PrecisionScope precision_;

 public:
  // The images, the normalization of the pixels, and the machine for run.json.
  const ImageData data;
  const Normalization normalization;
  const Machine machine;
  // The part of machine.device that may change the bits of results: processor and instruction set, but not the number
  // of threads.
  const std::string arithmetic;
  const DataFacts facts;  // name, sizes and hash of the data
};

}  // namespace plumb::lab
