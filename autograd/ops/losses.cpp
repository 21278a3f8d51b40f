// Losses of regression and of probabilities, composed of other ops.
#include "autograd/ops.h"

namespace plumb {
namespace {

void check_pair(const char* op, const Tensor& prediction, const Tensor& target) {
  detail::check_operands(op, prediction, target);
  check(prediction.shape() == target.shape() && prediction.numel() > 0,
        "[{}] expected a prediction and a target of one shape, with elements, got {} and {}", op, prediction.shape(),
        target.shape());
}

}  // namespace

Tensor mse_loss(const Tensor& prediction, const Tensor& target) {
  check_pair("mse_loss", prediction, target);
  const Tensor d = prediction - target;
  return mean(d * d);
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target) {
  check_pair("l1_loss", prediction, target);
  return mean(abs(prediction - target));
}

// With c = min(|d|, delta), the loss is c^2 / 2 + delta (|d| - c).
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta) {
  check_pair("huber_loss", prediction, target);
  check(delta > 0, "[huber_loss] expected a delta above 0, got {}", delta);
  const Tensor distance = abs(prediction - target), near = clamp(distance, 0, delta);
  return mean(near * near * 0.5 + (distance - near) * delta);
}

// Uses -t log p - (1 - t) log(1 - p) = softplus(x) - t x = softplus(-|x|) + x (s - t), with s = 1 if x > 0, else 0. The
// second form is no difference of large numbers.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target) {
  check_pair("binary_cross_entropy_with_logits", logits, target);
  const Tensor positive = greater(logits, 0);
  return mean(softplus(where(positive, -logits, logits)) + logits * (where(positive, 1, 0, logits.dtype()) - target));
}

// If t is 0, log t is replaced by 0, so that its derivatives are finite too.
Tensor kl_div(const Tensor& log_prediction, const Tensor& target) {
  check_pair("kl_div", log_prediction, target);
  check(target.shape().rank() >= 1, "[kl_div] expected rows [.., C], got a scalar");
  const Tensor none = equal(target, 0), log_target = log(where(none, 1, target));
  const double rows = static_cast<double>(target.numel() / target.dim(-1));
  return sum(where(none, 0, target * (log_target - log_prediction))) * (1 / rows);
}

}  // namespace plumb
