#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/tensor.h"
#include "experiments/lab/record/chance.h"

namespace plumb::lab {

// Whether the training has diverged if the value of this name is not finite. The result is true for losses ("loss",
// "val_loss", ...) and gradient norms ("grad_norm", "gradient_norm", "first_grad_norm", ...).
bool tells_divergence(std::string_view name);

// Decides when a training has diverged: if the loss or the gradient norm is not finite, or if the loss was above
// `limit` times chance for 20 steps in a row. The limit is one of the loss itself, whatever the entropy of the targets:
// the best constant guess has the loss `chance` with soft targets as well.
class DivergenceWatch {
 public:
  static constexpr std::size_t patience = 20;

  // `chance` is the loss of the best constant guess (ln(classes) for a cross-entropy), or infinity if this loss is
  // unknown. A `limit` of 0 means no limit.
  explicit DivergenceWatch(double chance, double limit = 10) : chance_(chance), limit_(limit) {}

  // Returns whether the training has diverged. Call observe() for each step in order, before the update of the step.
  // `target_entropy` is Task::target_entropy().
  bool observe(std::int64_t step, double loss, double gradient_norm, double target_entropy = 0);
  // Records the loss of a step without a decision. A second call for the same step has no effect.
  void see(std::int64_t step, double loss, double target_entropy = 0);
  // The reason for the divergence, after observe() has returned true. `loss` must compute the loss of the last step
  // again; call reason() within the random scope of this step. If a number was not finite, the step is repeated and
  // every op is checked. The reason then names the first op with a result that is not finite. If `loss` is empty, the
  // reason says that the op is not known.
  std::string reason(const std::function<Tensor()>& loss) const;

  // The first step of the current series of bad steps. A loss above the limit counts as divergence only after 20 steps,
  // so bad_since() may lie before the step for which observe() returned true.
  std::int64_t bad_since() const;

  // The loss of the best constant guess.
  double chance() const { return chance_; }
  // Whether the loss or the gradient norm of the last step was bad.
  bool is_bad() const { return !finite_ || (!recent_.empty() && is_above(recent_.back())); }
  // The means over the last 20 steps of the loss and of the entropy of the targets; `unknown` before the first step.
  double recent_loss() const;
  double recent_target_entropy() const;
  // The recent loss for comparisons with chance().
  double recent_clean_loss() const { return clean_loss(recent_loss(), recent_target_entropy(), chance_); }
  // The losses and the entropies of the last steps, which a checkpoint stores and restores. Both have the same length.
  const std::deque<double>& recent() const { return recent_; }
  const std::deque<double>& recent_entropies() const { return entropies_; }
  void set_recent(std::deque<double> losses, std::deque<double> entropies) {
    recent_ = std::move(losses), entropies_ = std::move(entropies);
  }

 private:
  bool is_above(double loss) const;  // whether `loss` is above the limit
  double chance_, limit_;
  bool finite_ = true;
  std::int64_t seen_ = -1;  // the last step that was recorded
  std::deque<double> recent_, entropies_;
};

}  // namespace plumb::lab
