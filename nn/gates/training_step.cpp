#include "nn/gates/training_step.h"

#include <cmath>

namespace plumb::nn {

std::int64_t TrainingStep::operator()() const { return counter_->step(); }

TrainingStep StepCounter::reader(const std::shared_ptr<StepCounter>& counter) {
  counter->needed_ = true;
  return TrainingStep(counter);
}

void StepCounter::attach(const Module& owner, const Tensor& value) {
  owner_ = &owner;
  value_ = value;
}

std::int64_t StepCounter::step() {
  check(owner_, "[training_step] expected a gate in a stack, got a gate whose block is not complete");
  const std::lock_guard lock(mutex_);
  if (const std::uint32_t version = value_.array().version(); version_ != version) {
    known_ = std::llround(value_.detach().item());  // weights were loaded, or nothing was read before
    version_ = version;
  }
  if (!owner_->training()) return known_;
  const std::int64_t now = random_state_for("training_step").step;
  check(value_.dtype() == DType::f64 || now <= 1 << 24,
        "[training_step] expected at most 2^24 steps in an f32 model, got step {}", now);
  if (now != known_ && current_repeat() == Repeat::none) {
    copy_into(full({1}, static_cast<double>(now), {value_.dtype(), value_.device()}).array(), value_.array());
    known_ = now;
    version_ = value_.array().version();
  }
  return now;
}

}  // namespace plumb::nn
