#include "nn/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace plumb::nn {
LearningRate::LearningRate(double constant) : f_([constant](std::int64_t) { return constant; }) {
  check(std::isfinite(constant) && constant >= 0,
        "[learning_rate] expected a finite learning rate of at least 0, got {}", constant);
}

LearningRate::LearningRate(std::function<double(std::int64_t)> f) : f_(std::move(f)) {
  check(static_cast<bool>(f_), "[learning_rate] expected a function of the step, got an empty one");
}

LearningRate warmed_up(LearningRate then, std::int64_t warmup) {
  check(warmup >= 0, "[learning_rate] expected at least 0 warm-up steps, got {}", warmup);
  return LearningRate([=](std::int64_t step) {
    if (step >= warmup) return then.at(step - warmup);
    return then.at(0) * static_cast<double>(step + 1) / static_cast<double>(warmup);
  });
}

LearningRate warmup_constant(double peak, std::int64_t warmup) { return warmed_up(peak, warmup); }

LearningRate cosine(double peak, std::int64_t steps) {
  return LearningRate([=](std::int64_t step) {
    const double t = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps, 1));
    return 0.5 * peak * (1 + std::cos(std::numbers::pi * std::min(t, 1.0)));
  });
}

LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps) {
  check(0 <= warmup && warmup <= steps, "[learning_rate] expected warm-up steps in 0..{}, got {}", steps, warmup);
  return warmed_up(cosine(peak, steps - warmup), warmup);
}

LearningRate warmup_inverse_sqrt(double peak, std::int64_t warmup) {
  check(warmup >= 1, "[learning_rate] expected at least 1 warm-up step before the inverse square root, got {}", warmup);
  return LearningRate([=](std::int64_t step) {
    const double t = static_cast<double>(step + 1) / static_cast<double>(warmup);
    return peak * std::min(t, 1 / std::sqrt(t));
  });
}

LearningRate inverse_sqrt(double peak, std::int64_t period) {
  check(period >= 1, "[learning_rate] expected a period of at least 1 step, got {}", period);
  return LearningRate(
      [=](std::int64_t step) { return peak / std::sqrt(1 + static_cast<double>(step) / static_cast<double>(period)); });
}

LearningRate step_decay(double base, std::vector<std::int64_t> milestones, double factor) {
  check(std::ranges::is_sorted(milestones), "[learning_rate] expected milestones in ascending order, got {}",
        fmt::join(milestones, ", "));
  return LearningRate([base, factor, milestones = std::move(milestones)](std::int64_t step) {
    return base *
           std::pow(factor, static_cast<double>(std::ranges::upper_bound(milestones, step) - milestones.begin()));
  });
}

LearningRate exponential_decay(double base, double factor, std::int64_t period) {
  check(period >= 1, "[learning_rate] expected a period of at least 1 step, got {}", period);
  return LearningRate([=](std::int64_t step) { return base * std::pow(factor, static_cast<double>(step / period)); });
}

}  // namespace plumb::nn
