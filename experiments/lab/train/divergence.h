#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace plumb::lab {

// Whether a non-finite value of this name means that the training has diverged. True for losses ("loss", "val_loss",
// ...) and gradient norms ("grad_norm", "gradient_norm", "first_grad_norm", ...).
bool tells_divergence(std::string_view name);

// Decides when a training has diverged: the loss or the gradient norm is not finite, or the loss was above `limit`
// times chance for 20 steps in a row.
class DivergenceWatch {
 public:
  static constexpr std::size_t patience = 20;

  // `chance`: the loss of a uniform guess, ln(classes); infinity if undefined. `limit`: 0 means no limit.
  explicit DivergenceWatch(double chance, double limit = 10) : chance_(chance), limit_(limit) {}

  // Returns whether the training has diverged. Call it for each step in order, before the step's update.
  bool observe(std::int64_t step, double loss, double gradient_norm);
  // Records the loss of a step without a decision. A second call for the same step has no effect.
  void see(std::int64_t step, double loss);
  // The reason for the divergence, after observe() has returned true. `loss` must compute the last step's loss again;
  // call reason() within this step's random scope. If a number was not finite, the step is repeated with every op
  // checked, and the reason names the first op that makes a non-finite number.
  std::string reason(const std::function<Tensor()>& loss) const;

  // The first step of the current series of bad steps. A loss above the limit counts as divergence only after 20 steps,
  // so this step may lie before the one at which observe() returned true.
  std::int64_t bad_since() const;

  // The loss of a uniform guess.
  double chance() const { return chance_; }
  // Whether the last step was bad.
  bool is_bad() const { return !finite_ || (!recent_.empty() && is_above(recent_.back())); }
  double recent_loss() const;  // mean over the last 20 steps; unknown before the first
  // The losses of the last steps, which a checkpoint stores and restores.
  const std::deque<double>& recent() const { return recent_; }
  void set_recent(std::deque<double> losses) { recent_ = std::move(losses); }

 private:
  bool is_above(double loss) const;  // whether `loss` is above the limit
  double chance_, limit_;
  bool finite_ = true;
  std::int64_t seen_ = -1;  // the last step seen
  std::deque<double> recent_;
};

}  // namespace plumb::lab
