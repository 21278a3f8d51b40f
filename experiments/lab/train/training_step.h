// A training step, while it runs and when it was taken.
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/tensor.h"
#include "core/scope.h"
#include "experiments/lab/run/step_profile.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

// One step of a training loop while it lives: random draws within it are the step's own, and --profile sees where it
// begins and ends.
class TrainingStep {
 public:
  TrainingStep(std::uint64_t seed, std::int64_t step)  // counted from 0
      : random_({.seed = seed, .step = static_cast<std::uint32_t>(step)}), step_(step) {
    StepProfile::step_begins(step);
  }
  ~TrainingStep() { StepProfile::step_ends(step_); }
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

 private:
  RandomScope random_;
  std::int64_t step_;
};

// A step that was taken.
struct TakenStep {
  std::int64_t step;
  double rate;
  nn::StepReading reading;
  std::function<Tensor()> loss;  // computes it again, within the step's random scope
  bool traced;                   // "loss", "lr_now" and "grad_norm"
};

}  // namespace plumb::lab
