// Learning rates as functions of the step, counted from 0.
#pragma once

#include <cstdint>
#include <functional>

namespace plumb::nn {

class LearningRate {
 public:
  LearningRate(double constant);  // implicit: {.lr = 1e-3} is a constant rate
  explicit LearningRate(std::function<double(std::int64_t)> f) : f_(std::move(f)) {}
  double at(std::int64_t step) const { return f_(step); }

 private:
  std::function<double(std::int64_t)> f_;
};

// Linear warm-up to `peak` over `warmup` steps (step s has peak (s + 1) / warmup), then constant.
LearningRate warmup_constant(double peak, std::int64_t warmup);
// The same warm-up, then peak (1 + cos(pi t)) / 2, t from 0 to 1 over the remaining steps: 0 is reached after the last of `steps`.
LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps);
inline LearningRate cosine(double peak, std::int64_t steps) { return warmup_cosine(peak, 0, steps); }

}  // namespace plumb::nn
