#include "experiments/lab/run/step_profile.h"

#include <algorithm>

#include "core/atomic_file.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/run/folder.h"

namespace plumb::lab {
namespace {

thread_local StepProfile* current = nullptr;

}  // namespace

StepProfile::StepProfile(const StudyFolder& folder, std::int64_t steps)
    : folder_(folder), last_(std::min(last_profiled_step, steps - 1)) {
  internal_check(last_ >= first_profiled_step, "a profile of steps {} to {} of {}", first_profiled_step,
                 last_profiled_step, steps);
  internal_check(!current, "a second step profile in one thread");
  current = this;
}

StepProfile::~StepProfile() { current = nullptr; }

void StepProfile::run_begins(const std::string& label) {
  if (current && !current->complete_) current->run_ = label;
}

void StepProfile::step_begins(std::int64_t step) {
  if (current) current->begin(step);
}

void StepProfile::step_ends(std::int64_t step) {
  if (current) current->end(step);
}

void StepProfile::begin(std::int64_t step) {
  if (complete_) return write();                        // writes at once, because a sweep may take hours
  if (step == first_profiled_step) profile_.emplace();  // replaces the incomplete profile of a shorter trial
}

void StepProfile::end(std::int64_t step) {
  if (complete_ || !profile_ || step != last_) return;
  profile_->stop();
  complete_ = true;
}

std::string StepProfile::text() const { return run_ + "\n\n" + profile_->table(); }

void StepProfile::write() {
  if (std::exchange(written_, true)) return;
  write_file_atomically(folder_ / "profile.txt", text());
  write_file_atomically(folder_ / "profile.json", profile_->chrome_trace());
}

void StepProfile::finish() {
  if (!complete_)
    return note_error(
        fmt::format("--profile: no profile was written, because no trial of this call took steps {} to {}\n",
                    first_profiled_step, last_));
  write();
  note_error(fmt::format("\n{}This table is in {}. Open {} in https://ui.perfetto.dev or chrome://tracing\n", text(),
                         (folder_ / "profile.txt").string(), (folder_ / "profile.json").string()));
}

}  // namespace plumb::lab
