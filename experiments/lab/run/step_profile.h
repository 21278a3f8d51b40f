// The implementation of --profile, which shows how the time of a few training steps is spent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/profile.h"

namespace plumb::lab {

class StudyFolder;

// Records the kernel calls of steps 3 to 7 of the first trial that takes all of these steps, in the thread that created
// the profile. While a StepProfile exists, each StepScope reports its steps to the profile, and Progress reports the
// names of the trials.
class StepProfile {
 public:
  // `steps` is the number of training steps of a trial. If a trial has fewer than 8 steps, the profile ends with the
  // last step. Throws Error for fewer than 4 steps, or if the thread already has a profile.
  StepProfile(const StudyFolder& folder, std::int64_t steps);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Writes profile.txt (a table) and profile.json (Chrome's trace event format) into the study folder, unless both
  // files are written already. Prints the table and the paths of both files on stderr. If no trial took the steps,
  // finish() prints this fact instead.
  void finish();

  // These functions tell the profile of the calling thread that a trial begins, or that a step begins or ends. Without
  // --profile, the functions do nothing.
  static void run_begins(const std::string& label);
  static void step_begins(std::int64_t step);
  static void step_ends(std::int64_t step);

 private:
  void begin(std::int64_t step);
  void end(std::int64_t step);
  void write();
  std::string text() const;

  const StudyFolder& folder_;
  std::int64_t last_;
  std::string run_;
  std::optional<Profile> profile_;
  bool complete_ = false, written_ = false;
};

}  // namespace plumb::lab
