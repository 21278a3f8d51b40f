// --dry-run: the trials that a call would run, and their cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Trials that will follow from the results of the named trials, as many as usual, and a line about them. Both are empty
// if all trials are named. `at_most` are all trials that may run, if these are more than the usual ones.
struct ToFollow {
  std::vector<Point> trials = {};
  std::string words = {};
  std::vector<Point> at_most = {};
};

// Returns the text of --dry-run. The text has a line for each trial of `named`, the trials to run, the line about the
// trials of `later`, and the total numbers of trials, steps and samples, which include `later`. If trials take steps,
// the numbers of parameters and an estimate of the training time follow, then the most that the call may cost.
// `finished` is the number of trials that
// --resume skips.
//
// The estimate measures a few steps of two trials: the shallowest trial, and the deepest trial of at most 256 blocks.
// The estimate then extrapolates linearly in depth. The depth of a trial is its value on the axis "depth", or 1 if the
// study has no such axis. The two measured trials run with the threads that one of `jobs` jobs has.
//
// No file is made or changed. Throws Error if a measured trial fails.
std::string dry_run(const TrialEnvironment& environment, const std::vector<Point>& named, std::size_t finished,
                    const ToFollow& later, int jobs, const DataFacts& data, const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
