// The scope of a running training step, and the data of a finished step.
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/tensor.h"
#include "core/scope.h"
#include "experiments/lab/run/step_profile.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

// The scope of one training step. While a StepScope exists, random draws belong to its step. StepScope also tells
// --profile when the step begins and ends.
class StepScope {
 public:
  StepScope(std::uint64_t seed, std::int64_t step)  // `step` is counted from 0
      : random_({.seed = seed, .step = static_cast<std::uint32_t>(step)}), step_(step) {
    StepProfile::step_begins(step);
  }
  ~StepScope() { StepProfile::step_ends(step_); }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  RandomScope random_;
  std::int64_t step_;
};

// The data of a step after the update of the step.
struct TakenStep {
  std::int64_t step;
  double rate;
  nn::StepReading reading;
  std::function<Tensor()> loss;  // computes the loss of the step again; call it in the random scope of the step
  bool traced;                   // whether "loss", "lr_now" and "grad_norm" of the step are logged
  double target_entropy = 0;     // Task::target_entropy() of the step
};

}  // namespace plumb::lab
