#include "nn/gates/gate.h"

#include <utility>

#include "nn/evaluation_scope.h"

namespace plumb::nn {
namespace {

std::optional<double>*& current_calibration() {
  thread_local std::optional<double>* carried = nullptr;
  return carried;
}

Tensor difference(const Tensor& skip, const Tensor& combined) {
  check_joined(skip, combined);
  return combined - skip;
}

}  // namespace

void check_joined(const Tensor& skip, const Tensor& combined) {
  check(combined.defined(), "[gate] expected combine to return a stream of shape {}, got an undefined tensor",
        skip.shape());
  check(combined.shape() == skip.shape(), "[gate] expected combine to return the shape of the stream {}, got {}",
        skip.shape(), combined.shape());
  check(combined.dtype() == skip.dtype(),
        "[gate] expected combine to return the stream's dtype {}, got {}; convert the result with cast()",
        enum_name(skip.dtype()), enum_name(combined.dtype()));
}

Tensor Gate::combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
  return gated_residual(skip, difference(skip, combine(skip, branch)), {}, row_scale);
}

Tensor Gate::added(const Tensor& skip, const Tensor& branch) const { return difference(skip, combine(skip, branch)); }

Tensor Gate::values(const Stream&) const {
  Tensors factors;
  for (const Parameter& p : parameters()) {
    if (p.role != Role::gate) continue;
    if (p.value.shape().rank() > 1) return {};
    factors.push_back(reshape(p.value, {p.value.numel()}));
  }
  return factors.empty() ? Tensor() : concat(factors, 0);
}

void Gate::join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const {
  const Tensor joined = mix(stream.x, branch, row_scale);
  check_joined(stream.x, joined);
  stream.x = norm ? (*norm)(joined) : joined;
}

std::optional<double>* detail::calibrating() { return current_calibration(); }

void calibrate(Layer& model, const Tensor& x) {
  struct CalibrationScope {  // restores the outer calibration even if the model throws
    CalibrationScope() : outer(std::exchange(current_calibration(), &carried)) {}
    ~CalibrationScope() { current_calibration() = outer; }
    std::optional<double> carried;
    std::optional<double>* outer;
  };
  const NoGrad no_grad;
  const EvaluationScope evaluation(model);
  const CalibrationScope calibration;
  model(x);
}

Tensor per_channel(const Tensor& parameter, Layout layout) {
  const bool spread = layout == Layout::images && parameter.defined() && parameter.shape() != Shape{1};
  return spread ? reshape(parameter, {parameter.numel(), 1, 1}) : parameter;
}

}  // namespace plumb::nn
