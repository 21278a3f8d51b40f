// The parts that a study sets up before its first trial: threads, dtype, device and problem.
#pragma once

#include "core/array.h"
#include "core/precision.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/problem/problem.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/machine.h"

namespace plumb::lab {

// The default dtype and the default device that --dtype and --device select.
Defaults defaults_for(const StudyOptions& options);

// The problem, the machine and the defaults that all trials of a call share.
class Setup {
 public:
  // Throws the errors of `make`.
  Setup(const StudyOptions& options, const ProblemFactory& make);

 private:
  DefaultsScope defaults_;  // sets the defaults of the calling thread while this object exists
  PrecisionScope precision_;

 public:
  const std::unique_ptr<const Problem> problem;
  const Machine machine;  // for run.json
  // The part of machine.device that may change the bits of results: processor and instruction set, but not the number
  // of threads.
  const std::string arithmetic;
  const DataFacts facts;  // those of the problem
};

}  // namespace plumb::lab
