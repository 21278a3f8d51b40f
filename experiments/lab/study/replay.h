// --replay: repeats the end of a diverged trial, also in f64, to find the cause of the divergence.
#pragma once

#include <functional>

#include "experiments/lab/run/folder.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Repeats the diverged trial whose label is options.replay. The first pass uses the number format of the trial. This
// pass goes from the last checkpoint of the trial (or from the first step) to the divergence, and keeps the state 10
// steps before the divergence began. A divergence begins, for instance, when the loss rises above the limit. The second
// pass runs in f64 from the kept state, for these 10 steps and 20 more, but not beyond the last step of the trial.
//
// Writes to stdout the op and the module that went wrong, and the cause. If f64 does not diverge, the cause is
// "numerical": the rounding of the number format. If f64 diverges as well, the cause is "dynamical": the training
// itself is unstable.
//
// Returns the exit status. Throws UsageError if the folder has no such diverged trial, or if the trial ran in f64.
int replay(const TrialEnvironment& environment, const StudyFolder& folder,
           const std::function<std::string(const Point&)>& key, const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
