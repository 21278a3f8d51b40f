// Passports of every layer while a trial trains.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/signals/probe.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// To be handed to Trial::train: a passport at the first and the last step and at about `count` - 1 in between, whatever
// the length. Attached to the trial.
AroundStep passports(Trial& trial, const nn::Stack& stack, std::int64_t count = 10);

struct StepStats {
  std::int64_t step;
  LayerStats passport;
};
// Those that a trial attached.
std::vector<StepStats> passports_of(const Record& record);

}  // namespace plumb::lab
