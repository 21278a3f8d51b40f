// --dry-run: the trials that a call would run, and their cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Returns the text of --dry-run: a line for each trial of `named`, the number of trials that --best-lr will add
// (`later`), and the totals of trials, steps and images. If trials take steps, the numbers of parameters and an
// estimate of the training time follow. The estimate measures a few steps of the shallowest trial and of the deepest
// trial of at most 256 blocks (on the axis "depth", if the study has one), and extrapolates linearly in depth. These
// two bodies run with the threads that one of `jobs` jobs has. No file is made or changed. Throws Error if a measured
// trial fails.
std::string dry_run(const TrialEnvironment& environment, const std::vector<Point>& named,
                    const std::vector<Point>& later, int jobs, const DataFacts& data,
                    const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
