#include "experiments/lab/train/trial.h"

#include <algorithm>
#include <cmath>

#include "autograd/backward.h"
#include "experiments/lab/train/trial_state.h"
#include "nn/audit.h"

namespace plumb::lab {
namespace {

void check_fresh(const nn::Module& model, std::uint64_t seed) {
  try {
    nn::audit_init(model, seed);
  } catch (const Error& e) {
    throw Error(fmt::format(
        "{}, and with the trial's seed (Trial::seed); if the weights are trained, call Trial::mark_pretrained before "
        "Trial::train",
        e.what()));
  }
}

}  // namespace

void Trial::train(nn::Layer& model, const Observer& observer) {
  const OptimizationOptions& o = run_.optimization;
  if (!run_.trained && !run_.calibrated) check_fresh(model, seed());
  calibrate(model);
  const auto optimizer = o.make(model.parameters(), warmup(), steps());
  std::optional<nn::Ema> ema;
  if (o.ema_decay > 0) ema.emplace(model, nn::EmaOptions{.decay = o.ema_decay, .warm_up = o.ema_warm_up});
  const std::unique_ptr<Task> task = run_.env.problem.task(task_settings(), model);
  for (Step& step : loop(model, *optimizer, {.ema = ema ? &*ema : nullptr, .observer = observer})) {
    const auto loss = task->loss_of(step.number());
    step.minimise_ahead(loss, task->target_entropy());
  }
  if (has_diverged()) return;
  const Values evaluation = evaluate();
  if (!std::isfinite(value_of(evaluation, "val_loss")))
    return mark_diverged(steps() - 1, "the validation loss is not finite");  // the last update made the loss not finite
  measure({{"train_loss", recent_loss()}});
  measure(evaluation);
  if (ema) ema->swap();  // the model keeps the weights that were evaluated
  run_.tracked.ema = nullptr, run_.tracked.optimizer = nullptr;
  if (const std::string samples = run_.env.problem.facts().samples; !samples.empty())
    measure({{samples + "_per_second",
              static_cast<double>(steps() * options().batch) / std::max(run_.record.seconds, 1e-9)}});
}

}  // namespace plumb::lab
