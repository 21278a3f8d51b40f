#include "nn/gates/training_step.h"

#include <cmath>
#include <mutex>
#include <optional>

namespace plumb::nn {

struct TrainingStep::Counter {
  std::int64_t step();

  std::mutex mutex;  // guards known, version and the value of the parameter: several threads may train one model
  bool needed = false;
  const Module* owner = nullptr;
  Tensor value;
  // The value of the parameter, as long as the parameter has this version.
  std::int64_t known = 0;
  std::optional<std::uint32_t> version_known = {};
};

TrainingStep::TrainingStep() : counter_(std::make_shared<Counter>()) {}

std::int64_t TrainingStep::operator()() const { return counter_->step(); }

TrainingStep TrainingStep::reader() const {
  counter_->needed = true;
  return *this;
}

bool TrainingStep::needed() const { return counter_->needed; }

void TrainingStep::attach(const Module& owner, const Tensor& value) const {
  counter_->owner = &owner;
  counter_->value = value;
}

std::int64_t TrainingStep::Counter::step() {
  check(owner, "[training_step] expected a gate in a stack, got a gate whose block is not complete");
  const std::lock_guard lock(mutex);
  if (const std::uint32_t version = value.array().version(); version_known != version) {
    known = std::llround(value.detach().item());  // weights were loaded, or nothing was read before
    version_known = version;
  }
  if (!owner->training()) return known;
  const std::int64_t now = random_state_for("training_step").step;
  check(value.dtype() == DType::f64 || now <= 1 << 24,
        "[training_step] expected at most 2^24 steps in an f32 model, got step {}", now);
  if (now != known && current_repeat() == Repeat::none) {
    copy_into(full({1}, static_cast<double>(now), {value.dtype(), value.device()}).array(), value.array());
    known = now;
    version_known = value.array().version();
  }
  return now;
}

}  // namespace plumb::nn
