// Passports of every layer while an arm trains.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/signals/probe.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// To be handed to Arm::train: a passport at the first and the last step and at about `count` - 1 in between, whatever the length. Attached to the
// arm.
AroundStep passports(Arm& arm, const nn::Stack& stack, std::int64_t count = 10);

struct StepPassport {
  std::int64_t step;
  Passport passport;
};
// Those that an arm attached.
std::vector<StepPassport> passports_of(const Record& record);

}  // namespace plumb::lab
