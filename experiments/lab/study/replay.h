// --replay: the end of a diverged trial again, in f32 and in f64, and what it shows.
#pragma once

#include <functional>

#include "experiments/lab/run/folder.h"
#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Repeats the trial whose label is options.replay, which the folder's ledger has as diverged: in the run's own number
// format from its last checkpoint (or from its first step) to the divergence, keeping its state 10 steps before it
// (before the loss rose above the limit, where that was it); then from that state in f64, for those 10 steps and 20
// more, as far as the run has steps. Writes to stdout which op and module went bad, and whether the cause is
//   numerical   f64 survives: the number format could not hold what exact arithmetic can
//   dynamical   f64 diverges as well: the training itself runs away
// Returns the exit status. Throws UsageError where there is no such trial, and for one that ran in f64 already.
int replay(const TrialEnvironment& environment, const StudyFolder& folder,
           const std::function<std::string(const Point&)>& key, const std::function<void(Trial&)>& body);

}  // namespace plumb::lab
