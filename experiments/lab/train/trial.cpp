#include "experiments/lab/train/trial.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/record/model_facts.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

const Point& Trial::read(const std::string& axis) const {
  run_.axes_read.insert(axis);
  return run_.record.point;
}

const Point& Trial::point() const {
  for (const auto& [axis, value] : run_.record.point.entries()) run_.axes_read.insert(axis);
  return run_.record.point;
}
const StudyOptions& Trial::options() const { return run_.options; }
std::uint64_t Trial::seed() const { return static_cast<std::uint64_t>(run_.record.seed()); }
const Problem& Trial::problem_of_any_type() const { return run_.env.problem; }
const TaskSettings& Trial::task_settings() const { return run_.task_settings; }
const std::filesystem::path& Trial::folder() const { return run_.env.folder; }
std::filesystem::path Trial::weights_file() const { return run_.weights_file(); }

std::int64_t Trial::warmup() const {
  if (options().warmup) return *options().warmup;
  // The warm-up of a trial of a search for a learning rate has the length of the warm-up of all steps.
  const Point& at = run_.record.point;
  const std::int64_t all_steps = is_of_search(at) ? run_.env.by_point.study(at.without(search_steps)).steps : steps();
  return std::min(std::llround(run_.warmup_share * static_cast<double>(all_steps)), static_cast<long long>(steps()));
}
void Trial::default_warmup(double share) { run_.warmup_share = share; }

Loop Trial::loop(nn::Layer& model, nn::Optimizer& optimizer, LoopOptions options) {
  track(model, optimizer, options.ema);
  return Loop(*this, run_, &optimizer, std::move(options));
}
Loop Trial::loop() { return Loop(*this, run_, nullptr, {}); }

void Trial::describe_model(const std::string& card) {
  if (!run_.tracked.model) run_.record.model = card;
}

void Trial::mark_pretrained() { run_.trained = true; }

void Trial::calibrate(nn::Layer& model) {
  if (run_.trained) return;
  const RandomScope random({.seed = seed(), .step = 0});
  run_.env.problem.calibrate(model, task_settings());
  run_.calibrated = true;
}

void Trial::track(nn::Layer& model, nn::Optimizer& optimizer, nn::Ema* ema) {
  check(!run_.tracked.model, "[track] expected one call of track() or loop(model, optimizer) in a trial, got a second");
  check(run_.record.steps == 0, "[track] expected a call before the first step, got one after step {}",
        run_.record.steps);
  run_.tracked.parameters = model.parameter_count();
  run_.record.model = model_facts(model);
  run_.tracked.model = &model, run_.tracked.optimizer = &optimizer, run_.tracked.ema = ema;
  run_.restore();
  // Reports before the training, not hours later, that the weights file will have no model card.
  if (run_.options.save_weights && run_.limits.leaves_files)
    if (const std::string lack = run_.weights_metadata().second; !lack.empty())
      run_.note(
          fmt::format("--save-weights: the weights file of {} will have no model card, so other programs cannot build "
                      "the model: {}",
                      run_.record.point.label(), lack));
}

Values Trial::evaluate() { return run_.latest_evaluation(); }
void Trial::save_under(nn::KeyMap names) { run_.tracked.names = std::move(names); }

void Trial::log(const Values& values) { run_.log(values); }
void Trial::trace(const Values& values) { run_.trace(values); }
void Trial::show(double loss, double rate) { run_.show(run_.step, loss, rate); }

void Trial::measure(const Values& values) {
  if (run_.has_ended()) return;
  for (const auto& [name, value] : values) {
    check_name(run_.record.point, name);
    set_value(run_.record.values, name, value);
  }
  run_.end_if_not_finite(values);
}

std::vector<std::pair<std::int64_t, double>> Trial::traced(const std::string& name) const {
  std::vector<std::pair<std::int64_t, double>> found;
  for (const StepValues& step : run_.record.metrics)
    if (const auto value = std::ranges::find(step.values, name, &Values::value_type::first); value != step.values.end())
      found.emplace_back(step.step, value->second);
  return found;
}

void Trial::attach(const std::string& json) {
  internal_check(Json::accept(json), "an attachment is not JSON: {}", json.substr(0, 60));
  if (!run_.repeats() && !run_.has_ended()) run_.record.attachments.push_back(json);
}

bool Trial::has_diverged() const { return run_.record.status == Status::diverged; }

bool Trial::check_divergence(const Gradients& step, const std::function<Tensor()>& loss, double target_entropy) {
  if (!run_.observe(run_.step, step.loss(), step.norm(), target_entropy)) return false;
  mark_diverged(run_.step, run_.watch.reason(loss));
  return true;
}

void Trial::mark_diverged(std::int64_t step, const std::string& reason) {
  if (!run_.has_ended() || run_.ended_by_value()) run_.mark_diverged(step, reason);
}

double Trial::recent_loss() const {
  run_.settle();
  return run_.watch.recent_loss();
}

void Trial::warn(const std::string& text) { run_.warning = text; }

void Trial::note(const std::string& text) { run_.note(text); }

}  // namespace plumb::lab
