// Records signal passports while a trial trains.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/signals/probe.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// Returns a function for Trial::train(). The function attaches a passport to the trial at the first step, at the last
// step and at about `count` - 1 steps in between.
AroundStep passports(Trial& trial, const nn::Stack& stack, std::int64_t count = 10);

// The passport of one step.
struct StepStats {
  std::int64_t step;
  LayerStats passport;
};
// The passports that are attached to the record of a trial, in the order of their steps.
std::vector<StepStats> passports_of(const Record& record);

}  // namespace plumb::lab
