#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "autograd/tensor.h"

namespace plumb::lab {

// Whether a value of this name that is not finite means that the training has diverged: a loss ("loss", "val_loss",
// ...) or the norm of gradients
// ("grad_norm", "gradient_norm", "first_grad_norm", ...).
bool tells_divergence(std::string_view name);

// When a training has diverged: the loss or the gradient's norm is not finite, or the loss has been above `limit` times
// chance for 20 steps in a row.
class DivergenceWatch {
 public:
  static constexpr std::size_t patience = 20;

  // Chance is the loss of knowing nothing, such as ln(classes); infinity if there is none.
  // A limit of 0 is none.
  explicit DivergenceWatch(double chance, double limit = 10) : chance_(chance), limit_(limit) {}

  // Of each step in turn, before its update.
  bool observe(std::int64_t step, double loss, double gradient_norm);
  // A step's loss alone, where nobody asks whether it diverged. Counts once a step.
  void see(std::int64_t step, double loss);
  // Why, once it has. `loss` computes that step's again, within its random scope: every op is then checked, and the
  // first one that makes a non-finite number is named.
  std::string reason(const std::function<Tensor()>& loss) const;

  // The first of the steps that are bad up to the last: a loss above the limit is known as divergence only when it has
  // lasted.
  std::int64_t bad_since() const;

  double chance() const { return chance_; }
  bool is_bad() const { return !finite_ || (!recent_.empty() && is_above(recent_.back())); }  // by its last step
  double recent_loss() const;  // mean over the last 20 steps; unknown before the first
  // What it remembers, for checkpoints: the last losses.
  const std::deque<double>& recent() const { return recent_; }
  void set_recent(std::deque<double> losses) { recent_ = std::move(losses); }

 private:
  bool is_above(double loss) const;  // the limit
  double chance_, limit_;
  bool finite_ = true;
  std::int64_t seen_ = -1;  // step
  std::deque<double> recent_;
};

}  // namespace plumb::lab
