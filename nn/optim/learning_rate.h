// Learning rates as functions of the training step, which is counted from 0.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace plumb::nn {

// A learning rate as a function of the step s.
class LearningRate {
 public:
  // A constant learning rate; the conversion is implicit, as in {.lr = 1e-3}. Throws Error if it is negative or not
  // finite.
  LearningRate(double constant);
  // The value of f at each step. Throws Error for an empty function.
  explicit LearningRate(std::function<double(std::int64_t)> f);
  // The learning rate of a step.
  double at(std::int64_t step) const { return f_(step); }

 private:
  std::function<double(std::int64_t)> f_;
};

// The schedule `then` after a linear warm-up to its first value. Step s < warmup has the learning rate then.at(0) (s +
// 1) / warmup, a later step then.at(s - warmup). The steps and milestones of `then` therefore count from the end of the
// warm-up. Throws Error for a negative warmup.
LearningRate warmed_up(LearningRate then, std::int64_t warmup);
// Linear warm-up to `peak`, then constant.
LearningRate warmup_constant(double peak, std::int64_t warmup);
// Linear warm-up, then peak (1 + cos(pi t)) / 2, where t goes from 0 to 1 over the remaining steps; the learning rate
// reaches 0 after the last of `steps`. Throws Error unless 0 <= warmup <= steps.
LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps);
// The same without warm-up.
LearningRate cosine(double peak, std::int64_t steps);
// peak min((s + 1) / warmup, sqrt(warmup / (s + 1))) (Vaswani et al. 2017). The maximum is at step warmup - 1. Throws
// Error for a warmup below 1.
LearningRate warmup_inverse_sqrt(double peak, std::int64_t warmup);
// peak sqrt(period / (period + s)). It starts at the peak, and is smaller by a factor of sqrt(2) after `period` steps
// (T-Fixup uses period 4000). Throws Error for a period below 1.
LearningRate inverse_sqrt(double peak, std::int64_t period);
// base factor^k, where k is the number of milestones that are at most s: the learning rate drops at these steps
// (ResNets). Throws Error unless the milestones are in ascending order.
LearningRate step_decay(double base, std::vector<std::int64_t> milestones, double factor = 0.1);
// base factor^floor(s / period): the learning rate drops after each epoch of `period` steps. Throws Error for a period
// below 1.
LearningRate exponential_decay(double base, double factor, std::int64_t period);

}  // namespace plumb::nn
