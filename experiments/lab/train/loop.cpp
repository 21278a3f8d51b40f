#include "experiments/lab/train/loop.h"

#include <algorithm>
#include <exception>

#include "autograd/backward.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t traced_steps = 200;

}  // namespace

void Step::check_may_step() const {
  check(loop_.optimizer_, "[step] expected trial.loop(model, optimizer) for minimise(), got trial.loop()");
  check(!gradients_, "[step] expected one call of minimise() in a step, got a second in step {}", number_);
}

const Gradients& Step::minimise_ahead(const std::function<Tensor()>& loss, double target_entropy) {
  check_may_step();
  return update(backward(loss()), loss, target_entropy);
}

const Gradients& Step::minimise(const std::function<Tensor()>& loss, double target_entropy) {
  const Gradients& gradients = minimise_ahead(loss, target_entropy);
  loop_.run_.settle();  // `loss` may refer to the batch of the body, which the next step replaces
  return gradients;
}

const Gradients& Step::minimise(const Tensor& loss, double target_entropy) {
  check_may_step();
  return update(backward(loss), {}, target_entropy);
}

const Gradients& Step::update(Gradients gradients, const std::function<Tensor()>& loss, double target_entropy) {
  LoopOptions& options = loop_.options_;
  const std::int64_t steps = loop_.run_.options.steps;
  const std::int64_t interval =
      options.trace_every > 0 ? options.trace_every : std::max<std::int64_t>(1, steps / traced_steps);
  gradients_ = std::move(gradients);
  const double rate = loop_.optimizer_->learning_rate();
  const nn::StepReading reading = loop_.optimizer_->step_while_finite(*gradients_);
  if (options.ema) options.ema->update();
  for (const Observer* observer : {&options.observer, &loop_.layers_})
    if (observer->after) observer->after(*gradients_);
  loop_.run_.took({.step = number_,
                   .rate = rate,
                   .reading = reading,
                   .loss = loss,
                   .traced = number_ % interval == 0 || number_ + 1 == steps,
                   .target_entropy = target_entropy});
  return *gradients_;
}

Loop::Loop(Trial& trial, TrialState& run, nn::Optimizer* optimizer, LoopOptions options)
    : run_(run), optimizer_(optimizer), options_(std::move(options)), first_(run.first_step()), step_(*this) {
  if (optimizer && run.env.observe) layers_ = run.env.observe(trial, *run.tracked.model);
  step_.number_ = first_ - 1;
}

// If the loop ends by `break`, the last step counts as taken. If an exception ends the loop, the last step does not
// count as taken.
Loop::~Loop() {
  if (!scope_) return;
  const bool broken = std::uncaught_exceptions() > 0;
  try {
    end_step();
    if (!broken) run_.after_step();
    run_.settle();
    if (!broken && run_.record.status == Status::ok) run_.save_weights();
  } catch (...) {
    if (!broken) run_.keep_error(std::current_exception());
  }
}

void Loop::end_step() {
  scope_.reset();
  step_.gradients_.reset();  // not needed while the model is evaluated and files are written
}

void Loop::advance() {
  if (scope_) {
    end_step();
    run_.after_step();
  }
  if (interrupted()) run_.settle();  // if a step has diverged, the trial ends as diverged, not as interrupted
  if (step_.number_ + 1 >= run_.options.steps || run_.record.status == Status::diverged) return;
  run_.before_step(++step_.number_);
  scope_.emplace(static_cast<std::uint64_t>(run_.record.seed()), step_.number_);
  for (const Observer* observer : {&options_.observer, &layers_})
    if (observer->before) observer->before(step_.number_);
}

}  // namespace plumb::lab
