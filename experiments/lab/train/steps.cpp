#include "experiments/lab/train/steps.h"

#include <exception>

#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

Steps::Steps(TrialState& run) : run_(run), first_(run.first_step()), step_(first_ - 1) {}

// If the loop ends by `break`, the last step counts as taken. If an exception ends the loop, the last step does not
// count as taken.
Steps::~Steps() {
  if (!scope_) return;
  scope_.reset();
  const bool broken = std::uncaught_exceptions() > 0;
  try {
    if (!broken) run_.after_step();
    run_.settle();
    if (!broken && run_.record.status == Status::ok) run_.save_weights();
  } catch (...) {
    if (!broken) run_.keep_error(std::current_exception());
  }
}

void Steps::advance() {
  if (scope_) {
    scope_.reset();
    run_.after_step();
  }
  if (interrupted()) run_.settle();  // if a step has diverged, the trial ends as diverged, not as interrupted
  if (step_ + 1 >= run_.options.steps || run_.record.status == Status::diverged) return;
  run_.before_step(++step_);
  scope_.emplace(static_cast<std::uint64_t>(run_.record.seed()), step_);
}

}  // namespace plumb::lab
