#include "experiments/lab/train/train.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "experiments/lab/train/trial_state.h"
#include "nn/audit.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t traced_steps = 200;

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

bool train(Trial& trial, Task& task, nn::Optimizer& optimizer, nn::Ema* ema, const AroundStep& around,
           std::int64_t log_every) {
  const std::int64_t interval = log_every > 0 ? log_every : std::max<std::int64_t>(1, trial.steps() / traced_steps);
  for (const std::int64_t step : trial.each_step()) {
    const auto loss = task.loss_of(step);
    const double target_entropy = task.target_entropy();
    auto after = around ? around(step) : nullptr;
    const double rate = optimizer.learning_rate();
    const Gradients gradients = backward(loss());
    const nn::StepReading reading = optimizer.step_while_finite(gradients);
    if (ema) ema->update();
    if (after) after(gradients);
    after = nullptr;  // removes observers, because the step may be repeated
    trial.took({.step = step,
                .rate = rate,
                .reading = reading,
                .loss = loss,
                .traced = step % interval == 0 || step + 1 == trial.steps(),
                .target_entropy = target_entropy});
  }
  return !trial.has_diverged();
}

void Trial::train(nn::Layer& model, const AroundStep& around) {
  const OptimizationOptions& o = run_.optimization;
  if (!run_.trained && !run_.calibrated) check_fresh(model, seed());
  calibrate(model);
  const auto optimizer = o.make(model.parameters(), warmup(), steps());
  std::optional<nn::Ema> ema;
  if (o.ema_decay > 0) ema.emplace(model, nn::EmaOptions{.decay = o.ema_decay, .warm_up = o.ema_warm_up});
  track(model, *optimizer, ema ? &*ema : nullptr);
  const std::unique_ptr<Task> task = run_.env.problem.task(task_settings(), model);
  if (!lab::train(*this, *task, *optimizer, ema ? &*ema : nullptr, around)) return;
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
