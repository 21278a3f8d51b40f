// The option --profile: shows where the time of a few training steps goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/profile.h"

namespace plumb::lab {

class StudyFolder;

// Records the kernel calls of steps 3 to 7 of the first trial that takes all of these steps, in the thread that created
// the profile. While a StepProfile exists, each TrainingStep reports to it and Progress tells it the trials' names.
class StepProfile {
 public:
  // `steps`: the number of training steps of a trial. If a trial is shorter than 8 steps, the profile ends with its
  // last step. Throws Error if there are fewer than 4 steps, or if the thread has a profile already.
  StepProfile(const StudyFolder& folder, std::int64_t steps);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Writes profile.txt (a table) and profile.json (Chrome's trace event format) into the run folder, if they are not
  // written yet. Prints the table and the paths of both files on stderr. If no trial took the steps, prints that
  // instead.
  void finish();

  // Tell the profile of the calling thread that a trial begins, or that a step begins or ends. Without --profile they
  // do nothing.
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
