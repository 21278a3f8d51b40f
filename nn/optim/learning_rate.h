// Learning rates as functions of the training step, which is counted from 0.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace plumb::nn {

// A learning rate as a function of the step s.
class LearningRate {
 public:
  // A constant learning rate; the conversion is implicit, as in {.lr = 1e-3}. Throws Error for a constant that is
  // negative or not finite.
  LearningRate(double constant);
  // A learning rate of f(s) at step s. Throws Error for an empty function.
  explicit LearningRate(std::function<double(std::int64_t)> f);
  // Returns the learning rate of a step.
  double at(std::int64_t step) const { return f_(step); }

 private:
  std::function<double(std::int64_t)> f_;
};

// Returns a linear warm-up to the first value of the schedule `then`, followed by `then`. The learning rate is
// then.at(0) (s + 1) / warmup for a step s < warmup, and then.at(s - warmup) for a later step. The steps and milestones
// of `then` are therefore counted from the end of the warm-up. Throws Error for a negative warmup.
LearningRate warmed_up(LearningRate then, std::int64_t warmup);
// Returns a linear warm-up to `peak`, followed by the constant `peak`.
LearningRate warmup_constant(double peak, std::int64_t warmup);
// Returns a linear warm-up, followed by peak (1 + cos(pi t)) / 2, where t goes from 0 to 1 over the remaining steps.
// The learning rate reaches 0 after the last of `steps` steps. Throws Error unless 0 <= warmup <= steps.
LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps);
// Returns warmup_cosine() without warm-up.
LearningRate cosine(double peak, std::int64_t steps);
// Returns the schedule peak min((s + 1) / warmup, sqrt(warmup / (s + 1))) (Vaswani et al. 2017). The maximum is at step
// warmup - 1. Throws Error for a warmup below 1.
LearningRate warmup_inverse_sqrt(double peak, std::int64_t warmup);
// Returns the schedule peak sqrt(period / (period + s)). The learning rate is `peak` at step 0, and peak / sqrt(2)
// after `period` steps. T-Fixup uses period 4000. Throws Error for a period below 1.
LearningRate inverse_sqrt(double peak, std::int64_t period);
// Returns the schedule base factor^k, where k is the number of milestones that are at most s. The learning rate drops
// at the milestones (ResNets). Throws Error unless the milestones are in ascending order.
LearningRate step_decay(double base, std::vector<std::int64_t> milestones, double factor = 0.1);
// Returns the schedule base factor^floor(s / period). The learning rate drops after each epoch of `period` steps.
// Throws Error for a period below 1.
LearningRate exponential_decay(double base, double factor, std::int64_t period);

}  // namespace plumb::nn
