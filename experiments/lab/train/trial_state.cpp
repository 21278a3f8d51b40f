#include "experiments/lab/train/trial_state.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <ranges>

#include "core/device_lost.h"
#include "core/one_line.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/run/progress.h"
#include "nn/evaluation_scope.h"

namespace plumb::lab {
namespace {

constexpr double hopeless_share = 0.98;  // of the way from the entropy of the targets to chance

std::string shown(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "not finite";
}

// Throws UsageError if the body has not called Trial::track() and the user gives an option that needs this call.
void check_tracked(const TrialState& run) {
  if (run.tracked.model) return;
  for (const auto& [on, option] : {std::pair(run.options.eval_every > 0, "--eval-every"),
                                   {run.options.save_weights, "--save-weights"},
                                   {run.options.stop_hopeless, "--stop-hopeless"},
                                   {run.limits.capture_before >= 0, "--replay"}})
    usage_check(!on,
                "{}: this program does not support the option, because its loop is not trial.loop(model, optimizer) "
                "and does not call track(model, optimizer)",
                option);
}

// The values of Problem::evaluate(). Throws Error if a value is not in facts().measures, because reports and verdicts
// then know neither its direction nor its unit, or if val_loss is missing.
Values evaluation_of(const Problem& problem, nn::Layer& model) {
  const NoGrad no_grad;
  Values values = problem.evaluate(model);
  const std::vector<Measure> measures = problem.facts().measures;
  for (const auto& [name, value] : values)
    check(std::ranges::find(measures, name, &Measure::name) != measures.end(),
          "[problem] expected evaluate() to return values that facts().measures describes, got \"{}\": add it to "
          "facts().measures",
          name);
  check(std::ranges::find(values, "val_loss", &Values::value_type::first) != values.end(),
        "[problem] expected evaluate() to return \"val_loss\", got {} other values", values.size());
  return values;
}

}  // namespace

void check_name(const Point& point, const std::string& name) {
  check(!name.empty() && !point.find(name) && name != "step" && name != diverged_at && name != "divergence" &&
            name != "status" && name != "steps" && name != "seconds" && !name.starts_with(steps_to_prefix) &&
            name.find_first_of(",\"\n") == std::string::npos,
        "[log] expected a name other than {}, step, steps, seconds, status, diverged_at, divergence and {}..., without "
        "comma, quote and line end, got \"{}\"",
        fmt::join(point.entries() | std::views::keys, ", "), steps_to_prefix, name);
}

TrialState::TrialState(const TrialEnvironment& environment, const Point& point, std::string key_, std::size_t place_)
    : env(environment),
      options(environment.by_point.study(point)),
      optimization(environment.by_point.at<OptimizationOptions>(point)),
      key(std::move(key_)),
      place(place_),
      record{.point = point},
      task_settings(static_cast<std::uint64_t>(record.seed()), options, optimization, record.point),
      watch(environment.chance, options.loss_limit),
      levels(environment.loss_levels) {
  task_settings.by_point_ = &environment.by_point;
}

void TrialState::note(const std::string& text) const {
  if (env.progress) env.progress->note(text);
}

std::int64_t TrialState::first_step() {
  check_tracked(*this);
  check(!(tracked.model && std::exchange(looped_, true)),
        "[track] expected one loop over the steps of a trial after track(), got a second");
  // A checkpoint of the end of the trial: the weights could not be written when the trial ended.
  if (restored_ && record.steps == (limits.finished ? limits.finished->steps : options.steps)) {
    save_weights();
    if (limits.finished) throw TrialStopped{TrialStopped::Why::enough};
  }
  return tracked.model ? record.steps : 0;
}

void TrialState::before_step(std::int64_t next) {
  if (next == limits.capture_before) limits.captured = state();
  if (next == limits.stop_before || record.seconds > limits.enough_seconds)
    throw TrialStopped{TrialStopped::Why::enough};
  if (interrupted()) {
    save_checkpoint();
    throw TrialStopped{TrialStopped::Why::interrupted};
  }
  step = next;
  step_began_ = Clock::now();
}

void TrialState::after_step() {
  const bool last = step + 1 == options.steps,
             evaluates = options.eval_every > 0 && (last || (step + 1) % options.eval_every == 0),
             judges = options.stop_hopeless && step + 1 == options.steps / 2;
  const bool timed =
      std::isfinite(limits.enough_seconds);  // waits for the numbers of each step, to time each step alone
  if (last || evaluates || judges || timed || step + 1 == limits.capture_before || step + 1 == limits.stop_before)
    settle();
  const Clock::time_point now = Clock::now();
  const double taken = std::chrono::duration<double>(now - step_began_).count();
  record.seconds += taken;
  fastest_step = std::min(fastest_step, taken);
  if (record.status == Status::diverged) return;
  record.steps = step + 1;
  if (!tracked.model || !limits.leaves_files) return;
  if (evaluates) last ? log(latest_evaluation()) : trace(latest_evaluation());
  if (judges && watch.recent().size() == DivergenceWatch::patience &&
      watch.recent_clean_loss() >= hopeless_share * watch.chance()) {
    save_checkpoint();
    throw TrialStopped{TrialStopped::Why::hopeless};
  }
  if (last) {
    save_weights();
    if (limits.finished) throw TrialStopped{TrialStopped::Why::enough};
  } else if (now - checkpointed_ >= std::chrono::duration<double, std::ratio<60>>(options.checkpoint_every)) {
    save_checkpoint();
  }
}

bool TrialState::observe(std::int64_t of_step, double loss, double gradient_norm, double target_entropy) {
  check(target_entropy >= 0 && std::isfinite(target_entropy),
        "[train] expected a target entropy that is finite and at least 0, got {}", target_entropy);
  const bool diverged = watch.observe(of_step, loss, gradient_norm, target_entropy);
  levels.see(of_step, watch);
  return diverged;
}

void TrialState::took(const TakenStep& taken) {
  pending_.push_back(taken);
  settle(most_pending);
}

std::vector<std::string> TrialState::unread_axes() const {
  std::vector<std::string> unread;
  for (const auto& [axis, value] : record.point.entries())
    if (!axes_read.contains(axis) && !env.by_point.binds(axis)) unread.push_back(axis);
  return unread;
}

bool TrialState::has_ended() {
  settle();
  return ended_;
}

void TrialState::settle(std::size_t most_left) {
  if (record.status == Status::diverged) pending_.clear();  // a rule of the body has marked the divergence
  while (!pending_.empty() && (pending_.size() > most_left || pending_.front().reading.arrived())) {
    const TakenStep taken = std::move(pending_.front());
    pending_.pop_front();
    const double loss = taken.reading.loss(), norm = taken.reading.norm();
    const bool bad = observe(taken.step, loss, norm, taken.target_entropy);
    if (taken.traced || bad)
      trace(taken.step, {{"loss", loss}, {"lr_now", taken.rate}, {"grad_norm", norm}});
    else
      show(taken.step, loss, taken.rate);
    if (!bad) continue;
    pending_.clear();  // later steps changed nothing or must not be reported
    ended_ = true;
    record.steps = taken.step;
    const RandomScope random(
        {.seed = static_cast<std::uint64_t>(record.seed()), .step = static_cast<std::uint32_t>(taken.step)});
    mark_diverged(taken.step, watch.reason(taken.loss));
  }
}

StepValues& TrialState::at(std::int64_t of_step) {
  std::vector<StepValues>& all = record.metrics;
  auto after = all.end();  // the place is usually at the end
  while (after != all.begin() && std::prev(after)->step > of_step) --after;
  if (after != all.begin() && std::prev(after)->step == of_step) return *std::prev(after);
  return *all.insert(after, {.step = of_step});
}

void TrialState::trace(std::int64_t of_step, const Values& values) {
  if (repeats()) return;
  StepValues& logged = at(of_step);
  for (const auto& [name, value] : values) {
    check_name(record.point, name);
    set_value(logged.values, name, value);
    if (name == "loss") last_loss = value, watch.see(of_step, value), levels.see(of_step, watch);
    if (name == "lr" || name == "lr_now") last_rate = value;
  }
  if (env.progress) env.progress->step(place, of_step + 1, last_loss, last_rate);
}

void TrialState::log(const Values& values) {
  if (has_ended()) return;
  trace(step, values);
  for (const auto& [name, value] : values) set_value(record.values, name, value);
  end_if_not_finite(values);
}

void TrialState::trace(const Values& values) {
  if (has_ended()) return;
  trace(step, values);
  end_if_not_finite(values);
}

Values TrialState::latest_evaluation() {
  settle();
  check(tracked.model, "[evaluate] expected track() before evaluate(), got no model");
  if (tracked.evaluated_after != record.steps || record.steps == 0) {
    std::optional<nn::EmaScope> averaged;
    if (tracked.ema) averaged.emplace(*tracked.ema);
    const nn::EvaluationScope evaluation(*tracked.model);
    tracked.evaluation = evaluation_of(env.problem, *tracked.model);
    tracked.evaluated_after = record.steps;
  }
  return tracked.evaluation;
}

void TrialState::end_if_not_finite(const Values& values) {
  for (const auto& [name, value] : values) {
    if (!tells_divergence(name) || std::isfinite(value) || record.status == Status::diverged) continue;
    mark_diverged(step, fmt::format("{} is not finite", name));
    ended_ = ended_by_value_ = true;
  }
}

void TrialState::show(std::int64_t of_step, double loss, double rate) {
  last_loss = loss, last_rate = rate;
  if (env.progress) env.progress->step(place, of_step + 1, loss, rate);
}

void TrialState::mark_diverged(std::int64_t at_step, const std::string& reason) {
  check(record.status != Status::diverged || std::exchange(ended_by_value_, false),
        "[diverged] expected one divergence per trial, got a second at step {}", at_step);
  record.status = Status::diverged;
  record.reason = one_line(reason);
  record.diverges_from = watch.is_bad() ? std::min(at_step, watch.bad_since()) : at_step;
  set_value(record.values, diverged_at, static_cast<double>(at_step));
  record.weights_saved.reset();
  if (std::error_code none; limits.leaves_files) std::filesystem::remove(weights_file(), none);
}

void TrialState::call(const std::function<void()>& body) {
  const auto ended_as = [&](Status status, std::string reason) {
    if (ended_) return;  // settle() has found a diverged step while the body ended
    record.status = status;
    record.reason = one_line(std::move(reason));
  };
  try {
    body();
    if (error_) std::rethrow_exception(error_);
  } catch (const TrialStopped& stopped) {
    if (stopped.why != TrialStopped::Why::hopeless) throw;
    const double entropy = watch.recent_target_entropy();
    ended_as(
        Status::hopeless,
        fmt::format("loss {:.4g} after half of the steps, at least {:.0f} % of {}chance ({:.4g})", watch.recent_loss(),
                    100 * hopeless_share,
                    entropy == 0 ? "" : fmt::format("the way from the entropy of the targets ({:.4g}) to ", entropy),
                    watch.chance()));
  } catch (const UsageError&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const OutOfMemory& e) {
    ended_as(Status::failed, fmt::format("{}; try a smaller --batch", e.what()));
  } catch (const std::bad_alloc&) {
    ended_as(Status::failed, "out of memory; try a smaller --batch");
  } catch (const std::exception& e) {  // the failure of one trial must not end the sweep
    ended_as(Status::failed, e.what());
  }
  if (record.status == Status::ok && !watch.recent().empty()) {
    for (const auto& [name, value] : levels.values(record.steps)) set_value(record.values, name, value);
    if (const double entropy = watch.recent_target_entropy(); entropy != 0)
      set_value(record.values, target_entropy_name, entropy);
  }
  if (record.status == Status::diverged) {
    at(static_cast<std::int64_t>(value_of(record.values, diverged_at))).ended = record.reason;
  }
  if (record.status == Status::failed) at(step).ended = record.reason;
  tracked.model = nullptr, tracked.optimizer = nullptr, tracked.ema = nullptr;
  pending_.clear();
}

namespace {

// The title of a measure; the name of a value that is no measure of the problem, such as an accuracy that a body
// measures.
std::string title_of(const std::vector<Measure>& measures, const std::string& name) {
  const Measure* measure = find_measure(measures, name);
  return measure ? measure->title : name;
}

}  // namespace

std::string TrialState::outcome(const std::vector<std::string>& show) const {
  switch (record.status) {
    case Status::diverged:
      return fmt::format("diverged at step {:.0f}: {}", value_of(record.values, diverged_at), record.reason);
    case Status::hopeless:
      return "stopped: " + record.reason;
    case Status::failed:
      return "failed: " + record.reason;
    case Status::ok:
      break;
  }
  std::string text = warning;
  const std::vector<Measure> measures = env.problem.facts().measures;
  for (const std::string& name : warning.empty() ? show : std::vector<std::string>())
    if (std::ranges::find(record.values, name, &Values::value_type::first) != record.values.end()) {
      const double value = value_of(record.values, name);
      text += (text.empty() ? "" : "  ") + (unit_of(measures, name) == Unit::fraction && std::isfinite(value)
                                                ? fmt::format("{} {:.1f} %", title_of(measures, name), 100 * value)
                                            : name == "train_loss" && std::isfinite(value)
                                                ? fmt::format("loss {:.3f}", value)
                                                : fmt::format("{} {}", name, shown(value, 4)));
    }
  return text;
}

}  // namespace plumb::lab
