// --profile: where the time of a few training steps goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/profile.h"

namespace plumb::lab {

class StudyFolder;

// What --profile asks for: the kernel calls of steps 3 to 7 of the first run that takes them all, in the thread that
// made it. While it lives, each TrainingStep reports to it, and Progress names the runs.
class StepProfile {
 public:
  // Runs have `steps` steps; shorter ones are profiled up to their end. Errors: fewer than first + 1 steps.
  StepProfile(const StudyFolder& folder, std::int64_t steps);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Writes profile.txt (the table) and profile.json (Chrome's trace event format) into the folder, if that is still to
  // do, and prints the table and where the files are on stderr, or that no run took these steps.
  void finish();

  // Of the thread that calls; they do nothing without --profile. Names the run that begins; a step begins and ends.
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
