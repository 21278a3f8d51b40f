// Learning rates as functions of the step, counted from 0.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace plumb::nn {

class LearningRate {
 public:
  // Implicit: {.lr = 1e-3} is a constant rate. Throws for one that is negative or not finite.
  LearningRate(double constant);
  explicit LearningRate(std::function<double(std::int64_t)> f);  // throws for an empty one
  double at(std::int64_t step) const { return f_(step); }

 private:
  std::function<double(std::int64_t)> f_;
};

// The schedule `then`, begun after a linear warm-up to its first value: step s < warmup has then.at(0) (s + 1) /
// warmup, later ones then.at(s - warmup). So a schedule's own steps, and its milestones, count from the end of the
// warm-up.
LearningRate warmed_up(LearningRate then, std::int64_t warmup);
// Warm-up to `peak`, then constant.
LearningRate warmup_constant(double peak, std::int64_t warmup);
// Warm-up, then peak (1 + cos(pi t)) / 2, t from 0 to 1 over the remaining steps: 0 is reached after the last of
// `steps`.
LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps);
LearningRate cosine(double peak, std::int64_t steps);
// peak min((s + 1) / warmup, sqrt(warmup / (s + 1))) (Vaswani et al. 2017): with warmup w it peaks at step w - 1. At
// least one step of warm-up.
LearningRate warmup_inverse_sqrt(double peak, std::int64_t warmup);
// peak sqrt(period / (period + s)): starts at the peak, and is down by sqrt(2) after `period` steps (T-Fixup's, with
// period 4000).
LearningRate inverse_sqrt(double peak, std::int64_t period);
// base factor^k, k the number of milestones that are at most s: drops at these steps, given in ascending order
// (ResNets).
LearningRate step_decay(double base, std::vector<std::int64_t> milestones, double factor = 0.1);
// base factor^floor(s / period): a drop after each epoch of `period` steps.
LearningRate exponential_decay(double base, double factor, std::int64_t period);

}  // namespace plumb::nn
