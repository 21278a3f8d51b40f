// --dry-run: what a call would do, and what it would cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// A line a trial that is named, and how many come later at rates that these choose; then how many trials, steps and
// images there are, and, where there are steps to take, the numbers of parameters and an estimate of the training time:
// from a few steps of the shallowest trial and of the deepest of at most 256 blocks, by the axis "depth", if the study
// has one, and in proportion to depth for the others. Their bodies run up to there, on the threads that each of so many
// jobs has. Makes and changes no file.
std::string dry_run(const TrialEnvironment& environment, const std::vector<Point>& named,
                    const std::vector<Point>& later, int jobs, const DataFacts& data,
                    const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
