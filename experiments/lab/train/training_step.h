// A training step, and --profile: where the time of a few of them goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/profile.h"
#include "core/scope.h"

namespace plumb::lab {

class RunFolder;

// One step of a training loop while it lives: random draws within it are the step's own, and --profile sees where it begins and ends.
class TrainingStep {
 public:
  TrainingStep(std::uint64_t seed, std::int64_t step);  // counted from 0
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

 private:
  RandomScope random_;
  std::int64_t step_;
};

// What --profile asks for: the kernel calls of steps 3 to 7 of the first run that takes them all, in the thread that made it. While it lives, each
// TrainingStep reports to it, and Progress names the runs.
class StepProfile {
 public:
  static constexpr std::int64_t first = 3, last = 7;  // the first steps take memory from the system and compile kernels

  // Runs have `steps` steps; shorter ones are profiled up to their end. Errors: fewer than first + 1 steps.
  StepProfile(const RunFolder& folder, std::int64_t steps);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Writes profile.txt (the table) and profile.json (Chrome's trace event format) into the folder, if that is still to do, and prints the table and
  // where the files are on stderr, or that no run took these steps.
  void finish();

  // Names the run that begins in this thread. Does nothing without --profile.
  static void run_begins(const std::string& label);

 private:
  friend TrainingStep;
  void begin(std::int64_t step);
  void end(std::int64_t step);
  void write();
  std::string text() const;

  const RunFolder& folder_;
  std::int64_t last_;
  std::string run_;
  std::optional<Profile> profile_;
  bool complete_ = false, written_ = false;
};

}  // namespace plumb::lab
