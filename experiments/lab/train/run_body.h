// Runs the body of a trial.
#pragma once

#include <functional>

#include "experiments/lab/train/trial.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

// Calls a body with the trial of this state, and records how the trial ended. The exceptions UsageError and
// TrialStopped (with the reasons interrupted and enough) are passed on to the caller.
inline void run_body(TrialState& run, const std::function<void(Trial&)>& body) {
  run.call([&] {
    Trial trial(run);
    body(trial);
  });
}

}  // namespace plumb::lab
