// --replay: repeats the end of a diverged trial, also in f64, to find the cause of the divergence.
#pragma once

#include <functional>

#include "experiments/lab/run/folder.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Repeats the diverged trial whose label is options.replay. The first pass uses the trial's number format and goes from
// its last checkpoint (or its first step) to the divergence. It keeps the state 10 steps before the divergence began,
// for instance before the loss rose above the limit. The second pass runs from that state in f64, for these 10 steps
// and 20 more, but not beyond the last step of the trial. Writes to stdout which op and module went wrong, and the
// cause:
//   numerical   f64 does not diverge, so the rounding of the number format is the cause
//   dynamical   f64 diverges as well, so the training itself is unstable
// Returns the exit status. Throws UsageError if the folder has no such diverged trial, or if the trial ran in f64.
int replay(const TrialEnvironment& environment, const StudyFolder& folder,
           const std::function<std::string(const Point&)>& key, const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
