#include "experiments/lab/train/divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/backward.h"
#include "autograd/debug.h"
#include "autograd/ops.h"
#include "experiments/lab/record/record.h"

namespace plumb::lab {
namespace {

// Repeats a step and checks every op. Returns the message of the first op with a result that is not finite. The step
// depends only on weights, batch, seed and step number, so the same op fails again.
std::string first_non_finite_op(const std::function<Tensor()>& loss) {
  const AnomalyMode anomaly;
  try {
    (void)backward(loss());
  } catch (const Error& e) {
    std::string message = e.what();
    return message;
  }
  return "the gradient norm overflows, although every gradient is finite";
}

double mean_of(const std::deque<double>& values) {
  return values.empty() ? unknown
                        : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

bool tells_divergence(std::string_view name) {
  for (const std::string_view word : {"loss", "grad_norm", "gradient_norm"})
    if (name.ends_with(word) && (name.size() == word.size() || name[name.size() - word.size() - 1] == '_')) return true;
  return false;
}

void DivergenceWatch::see(std::int64_t step, double loss, double target_entropy) {
  if (step == std::exchange(seen_, step)) return;
  recent_.push_back(loss), entropies_.push_back(target_entropy);
  if (recent_.size() > patience) recent_.pop_front(), entropies_.pop_front();
}

bool DivergenceWatch::observe(std::int64_t step, double loss, double gradient_norm, double target_entropy) {
  see(step, loss, target_entropy);
  finite_ = std::isfinite(loss) && std::isfinite(gradient_norm);
  return !finite_ ||
         (recent_.size() == patience && std::ranges::all_of(recent_, [this](double l) { return is_above(l); }));
}

bool DivergenceWatch::is_above(double loss) const { return limit_ > 0 && loss > limit_ * chance_; }

std::string DivergenceWatch::reason(const std::function<Tensor()>& loss) const {
  if (!finite_ && !loss)
    return "loss or gradient norm not finite, op not known: pass a function that computes the loss, not a tensor";
  if (!finite_) return first_non_finite_op(loss);
  return fmt::format("loss above {:.4g}, {:g} times chance ({:.4g}), for {} steps", limit_ * chance_, limit_, chance_,
                     patience);
}

std::int64_t DivergenceWatch::bad_since() const {
  if (!finite_) return seen_;
  const auto last_good = std::find_if(recent_.rbegin(), recent_.rend(), [this](double l) { return !is_above(l); });
  return seen_ + 1 - (last_good - recent_.rbegin());
}

double DivergenceWatch::recent_loss() const { return mean_of(recent_); }
double DivergenceWatch::recent_target_entropy() const { return mean_of(entropies_); }

}  // namespace plumb::lab
