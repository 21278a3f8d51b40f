#include "nn/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace plumb::nn {
namespace {

double warmed(double peak, std::int64_t warmup, std::int64_t step) { return peak * static_cast<double>(step + 1) / static_cast<double>(warmup); }

}  // namespace

LearningRate::LearningRate(double constant) : f_([constant](std::int64_t) { return constant; }) {}

LearningRate warmup_constant(double peak, std::int64_t warmup) {
  check(warmup >= 0, "[learning_rate] expected at least 0 warm-up steps, got {}", warmup);
  return LearningRate([=](std::int64_t step) { return step < warmup ? warmed(peak, warmup, step) : peak; });
}

LearningRate warmup_cosine(double peak, std::int64_t warmup, std::int64_t steps) {
  check(0 <= warmup && warmup <= steps, "[learning_rate] expected warm-up steps in 0..{}, got {}", steps, warmup);
  return LearningRate([=](std::int64_t step) {
    if (step < warmup) return warmed(peak, warmup, step);
    const double t = static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
    return 0.5 * peak * (1 + std::cos(std::numbers::pi * std::min(t, 1.0)));
  });
}

}  // namespace plumb::nn
