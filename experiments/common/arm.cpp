#include "experiments/common/arm.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <ranges>

#include "autograd/autograd.h"
#include "experiments/common/arm_run.h"
#include "experiments/common/cli.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/progress.h"
#include "nn/io/weights.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

const std::string diverged_at = "diverged_at";
constexpr double hopeless_share = 0.98;  // of chance

double log_classes(const ImageData& data) { return std::log(static_cast<double>(data.train.classes)); }

// Without line ends, and indentation after them.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (const bool space = c == '\n' || c == ' '; !space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  return line;
}

std::string line_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string shown(double value, int digits) { return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "not finite"; }

// What a body may call a value.
void check_name(const Point& point, const std::string& name) {
  check(
      !name.empty() && !point.find(name) && name != "step" && name != diverged_at && name != "divergence" && name != "status" && name != "steps" &&
          name != "seconds" && name.find_first_of(",\"\n") == std::string::npos,
      "[log] expected a name other than {}, step, steps, seconds, status, diverged_at and divergence, without comma, quote and line end, got \"{}\"",
      fmt::join(point.entries() | std::views::keys, ", "), name);
}

// Throws UsageError for options that a body can only follow once it has said what it trains.
void check_tracked(const ArmRun& run) {
  if (run.model) return;
  for (const auto& [on, option] : {std::pair(run.options.eval_every > 0, "--eval-every"),
                                   {run.options.save_weights, "--save-weights"},
                                   {run.options.stop_hopeless, "--stop-hopeless"},
                                   {run.capture_before >= 0, "--replay"}})
    usage_check(!on, "{}: this program does not say what it trains; its loop would call track(model, optimizer) (experiments/common/arm.h)", option);
}

}  // namespace

Batch to_tensors(const HostBatch& batch, const ImageSet& set) {
  const Tensor images(array_from(std::span<const float>(batch.images), {batch.size(), set.channels, set.height, set.width}, defaults().device));
  return {cast(images, defaults().dtype), integers(batch.labels, {batch.size()})};
}

RunOptions options_at(RunOptions o, const Point& point) {
  point.take("steps", o.steps), point.take("warmup", o.warmup), point.take("batch", o.batch), point.take("loss_limit", o.loss_limit);
  point.take("eval_every", o.eval_every), point.take("eval_images", o.eval_images);
  return o;
}

// --- ArmRun ---

ArmRun::ArmRun(const ArmEnvironment& environment, const Point& point, std::string key_, std::size_t place_)
    : env(environment),
      options(options_at(environment.options, point)),
      key(std::move(key_)),
      place(place_),
      record{.point = point},
      watch(log_classes(environment.data), options.loss_limit) {}

std::filesystem::path ArmRun::checkpoint_file() const {
  return env.folder / "checkpoints" / fmt::format("{}-{:.8}.safetensors", record.point.file_stem(), key);
}

ArmCheckpoint ArmRun::state() const {
  ArmCheckpoint c{.key = key, .code = env.code, .machine = env.machine, .step = record.steps, .record = record, .recent = watch.recent()};
  add_part(c.tensors, "model", nn::copies(nn::weights(*model)));
  add_part(c.tensors, "optimizer", optimizer->state());
  if (ema) add_part(c.tensors, "ema", ema->state());
  return c;
}

void ArmRun::save_checkpoint() {
  if (!model || !leaves_files || options.checkpoint_every == 0 || record.steps == 0 || watch.is_bad()) return;
  checkpointed_ = Clock::now();
  try {
    write_checkpoint(checkpoint_file(), state());
    checkpoint_written_ = true;
  } catch (const std::exception& e) {  // the training is worth more
    note(fmt::format("no checkpoint of {}: {}", record.point.label(), one_line(e.what())));
  }
}

// The arm's checkpoint in the folder, if it is one to go on from. Another is kept beside, under a name of its own.
std::optional<ArmCheckpoint> ArmRun::read_checkpoint_of_folder() const {
  const std::filesystem::path file = checkpoint_file();
  if (!leaves_files || !std::filesystem::exists(file)) return std::nullopt;
  std::string kept = "damaged";
  try {
    ArmCheckpoint found = read_checkpoint(file);
    kept = found.code;
    check(found.key == key, "{}: it is of other settings or data", file.string());
    check(found.code == env.code, "{}: it is of other code ({}, this is {})", file.string(), found.code, env.code);
    if (found.machine != env.machine)
      note(fmt::format("{} goes on from step {} on another machine ({}, before {})", record.point.label(), found.step, env.machine, found.machine));
    return found;
  } catch (const Error& e) {
    note(fmt::format("{} begins anew: {}", record.point.label(), one_line(e.what())));
    set_aside(kept);
    return std::nullopt;
  }
}

void ArmRun::set_aside(const std::string& mark) const {
  const std::filesystem::path file = checkpoint_file();
  std::error_code none;
  std::filesystem::rename(file, file.parent_path() / fmt::format("{}-{}.safetensors", file.stem().string(), mark), none);
}

void ArmRun::restore() {
  const std::optional<ArmCheckpoint> found = start_from ? std::nullopt : read_checkpoint_of_folder();
  const ArmCheckpoint* from = start_from ? start_from : found ? &*found : nullptr;
  if (!from) return;
  try {
    nn::assign(nn::weights(*model), part_of(from->tensors, "model"), fmt::format("[checkpoint] {}", record.point.label()));
    optimizer->load_state(part_of(from->tensors, "optimizer"));
    if (ema) ema->load_state(part_of(from->tensors, "ema"));
  } catch (const Error&) {  // the body trains something else than it did: another call begins anew
    if (found) set_aside("unfit");
    throw;
  }
  record = from->record;
  record.status = Status::ok;
  watch.set_recent(from->recent);
  restored_ = true;
  if (env.progress) env.progress->goes_on(place, record.steps);
}

void ArmRun::note(const std::string& text) const {
  if (env.progress) env.progress->note(text);
}

std::int64_t ArmRun::first_step() {
  check_tracked(*this);
  check(!(model && std::exchange(looped_, true)), "[track] expected one loop over the steps of an arm that tracks what it trains, got a second");
  return model ? record.steps : 0;
}

void ArmRun::before_step(std::int64_t next) {
  if (next == capture_before) captured = state();
  if (next == stop_before || record.seconds > enough_seconds) throw ArmStopped{ArmStopped::Why::enough};
  if (interrupted()) {
    save_checkpoint();
    throw ArmStopped{ArmStopped::Why::interrupted};
  }
  step = next;
  step_began_ = Clock::now();
}

void ArmRun::after_step() {
  const Clock::time_point now = Clock::now();
  const double taken = std::chrono::duration<double>(now - step_began_).count();
  record.seconds += taken;
  fastest_step = std::min(fastest_step, taken);
  if (record.status == Status::diverged) return;
  record.steps = step + 1;
  if (!model || !leaves_files) return;
  const bool last = record.steps == options.steps;
  if (Arm arm(*this); options.eval_every > 0 && last)
    arm.log(arm.evaluate());
  else if (options.eval_every > 0 && record.steps % options.eval_every == 0)
    arm.trace(arm.evaluate());
  if (options.stop_hopeless && record.steps == options.steps / 2 && watch.recent().size() == DivergenceWatch::patience &&
      watch.recent_loss() >= hopeless_share * watch.chance()) {
    save_checkpoint();
    throw ArmStopped{ArmStopped::Why::hopeless};
  }
  if (last)
    save_weights();
  else if (now - checkpointed_ >= std::chrono::duration<double, std::ratio<60>>(options.checkpoint_every))
    save_checkpoint();
}

void ArmRun::save_weights() {
  if (!options.save_weights || !leaves_files || !model) return;
  std::optional<nn::EmaScope> averaged;
  if (ema) averaged.emplace(*ema);
  const std::filesystem::path file = Arm(*this).weights_file();
  try {
    std::filesystem::create_directories(file.parent_path());
    nn::save_weights(*model, file, names);
  } catch (const std::exception& e) {  // what was measured stays
    note(fmt::format("no weights of {}: {}", record.point.label(), one_line(e.what())));
  }
}

void ArmRun::call(const std::function<void(Arm&)>& body) {
  const auto ended_as = [&](Status status, std::string reason) {
    record.status = status;
    record.reason = one_line(std::move(reason));
  };
  try {
    Arm arm(*this);
    body(arm);
    if (error_) std::rethrow_exception(error_);
  } catch (const ArmStopped& stopped) {
    if (stopped.why != ArmStopped::Why::hopeless) throw;
    ended_as(Status::hopeless, fmt::format("loss {:.4g} after half of the steps, at least {:.0f} % of chance ({:.4g})", watch.recent_loss(),
                                           100 * hopeless_share, watch.chance()));
  } catch (const UsageError&) {
    throw;
  } catch (const std::bad_alloc&) {
    ended_as(Status::failed, "out of memory; try a smaller --batch");
  } catch (const std::exception& e) {  // one arm's failure is not the sweep's
    ended_as(Status::failed, e.what());
  }
  if (record.status == Status::failed) record.metrics.push_back(line_of({{"step", step}, {"failure", record.reason}}));
  model = nullptr, optimizer = nullptr, ema = nullptr;
}

std::string ArmRun::outcome(const std::vector<std::string>& show) const {
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
  for (const std::string& name : warning.empty() ? show : std::vector<std::string>())
    if (std::ranges::find(record.values, name, &Values::value_type::first) != record.values.end()) {
      const double value = value_of(record.values, name);
      text += (text.empty() ? "" : "  ") + (name == "val_accuracy" && std::isfinite(value) ? fmt::format("acc {:.1f} %", 100 * value)
                                            : name == "train_loss" && std::isfinite(value) ? fmt::format("loss {:.3f}", value)
                                                                                           : fmt::format("{} {}", name, shown(value, 4)));
    }
  return text;
}

// --- the loops ---

Steps::Steps(ArmRun& run) : run_(run), first_(run.first_step()), step_(first_ - 1) {}

// A loop that was left by break has done its last step.
Steps::~Steps() {
  if (!scope_ || std::uncaught_exceptions() > 0) return;
  scope_.reset();
  try {
    run_.after_step();
    if (run_.record.status == Status::ok) run_.save_weights();
  } catch (...) {
    run_.keep_error(std::current_exception());
  }
}

void Steps::advance() {
  if (scope_) {
    scope_.reset();
    run_.after_step();
  }
  if (step_ + 1 >= run_.options.steps) return;
  run_.before_step(++step_);
  scope_.emplace(static_cast<std::uint64_t>(run_.record.seed()), step_);
}

Batches::Batches(ArmRun& run, const Augmentation& augment)
    : steps_(run),
      loader_(run.env.data.train, run.env.normalization,
              {.batch = run.options.batch, .seed = static_cast<std::uint64_t>(run.record.seed()), .augment = augment, .start_step = steps_.first_}) {}

void Batches::advance() {
  steps_.advance();
  if (steps_.scope_) batch_ = to_tensors(loader_.next(), steps_.run_.env.data.train);
}

// --- Arm ---

const Point& Arm::point() const { return run_.record.point; }
const RunOptions& Arm::options() const { return run_.options; }
std::uint64_t Arm::seed() const { return static_cast<std::uint64_t>(run_.record.seed()); }
const ImageData& Arm::data() const { return run_.env.data; }
const Normalization& Arm::normalization() const { return run_.env.normalization; }
const std::filesystem::path& Arm::folder() const { return run_.env.folder; }
std::filesystem::path Arm::weights_file() const { return folder() / "weights" / (point().file_stem() + ".safetensors"); }

Batches Arm::batches(const Augmentation& augment) { return Batches(run_, augment); }
Steps Arm::each_step() { return Steps(run_); }

nn::ViTOptions Arm::vit(const ViTChoice& choice) const {
  nn::ViTOptions o = run_.env.network.at(point()).vit(data().train, steps());
  point().take("depth", o.depth);
  if (choice.depth) o.depth = *choice.depth;
  if (choice.gate)
    o.gate = *choice.gate;
  else if (point().find("gate"))
    o.gate = point().get<std::string>("gate");
  o.seed = seed();
  return o;
}

void Arm::train(nn::Layer& model, const AroundStep& around) {
  const OptimizationOptions o = run_.env.optimization.at(point());
  calibrate(model);
  const auto optimizer = o.make(model.parameters(), options().warmup, steps());
  std::optional<nn::Ema> ema;
  if (o.ema_decay > 0) ema.emplace(model.parameters(), nn::EmaOptions{.decay = o.ema_decay, .warm_up = true});
  track(model, *optimizer, ema ? &*ema : nullptr);
  ImageTask task(*this, model, normalization());
  if (!lab::train(*this, task, *optimizer, ema ? &*ema : nullptr, around)) return;
  const Values evaluation = evaluate();
  if (!std::isfinite(value_of(evaluation, "val_loss"))) return diverged(steps() - 1, "the validation loss is not finite");  // the last update did it
  measure({{"train_loss", recent_loss()}});
  measure(evaluation);
  measure({{"images_per_second", static_cast<double>(steps() * options().batch) / std::max(run_.record.seconds, 1e-9)}});
}

void Arm::calibrate(nn::Layer& model) {
  const RandomScope random({.seed = seed(), .step = 0});
  BatchLoader loader(data().train, normalization(), {.batch = options().batch, .seed = seed()});
  nn::calibrate(model, to_tensors(loader.next(), data().train).images);
}

void Arm::track(nn::Layer& model, nn::Optimizer& optimizer, nn::Ema* ema) {
  check(!run_.model, "[track] expected to be told once what an arm trains, got a second model");
  check(run_.record.steps == 0, "[track] expected to be told what is trained before the first step, got it after step {}", run_.record.steps);
  run_.parameters = model.parameter_count();
  run_.model = &model, run_.optimizer = &optimizer, run_.ema = ema;
  run_.evaluate = [this_run = &run_] {
    std::optional<nn::EmaScope> averaged;
    if (this_run->ema) averaged.emplace(*this_run->ema);
    const Evaluation e =
        lab::evaluate(*this_run->model, this_run->env.data.validation, this_run->env.normalization, 256, this_run->options.eval_images);
    return Values{{"val_loss", e.loss}, {"val_accuracy", e.accuracy}};
  };
  run_.restore();
}

Values Arm::evaluate() {
  check(run_.model, "[evaluate] expected track() before evaluate(), got no model");
  if (run_.evaluated_after != run_.record.steps || run_.record.steps == 0) {
    run_.evaluation = run_.evaluate();
    run_.evaluated_after = run_.record.steps;
  }
  return run_.evaluation;
}

void Arm::track_evaluation(std::function<Values()> evaluate) { run_.evaluate = std::move(evaluate); }
void Arm::save_under(nn::KeyMap names) { run_.names = std::move(names); }

void Arm::log(const Values& values) {
  trace(values);
  for (const auto& [name, value] : values) set_value(run_.record.values, name, value);
}

void Arm::trace(const Values& values) {
  if (run_.repeats()) return;
  Json line{{"step", run_.step}};
  for (const auto& [name, value] : values) {
    check_name(point(), name);
    line[name] = value;  // written as null where not finite
    if (name == "loss") run_.last_loss = value, run_.watch.see(run_.step, value);
    if (name == "lr" || name == "lr_now") run_.last_rate = value;
  }
  run_.record.metrics.push_back(line_of(line));
  if (run_.env.progress) run_.env.progress->step(run_.place, run_.step + 1, run_.last_loss, run_.last_rate);
}

void Arm::show(double loss, double rate) {
  run_.last_loss = loss, run_.last_rate = rate;
  if (run_.env.progress) run_.env.progress->step(run_.place, run_.step + 1, loss, rate);
}

void Arm::measure(const Values& values) {
  for (const auto& [name, value] : values) {
    check_name(point(), name);
    set_value(run_.record.values, name, value);
  }
}

std::vector<std::pair<std::int64_t, double>> Arm::traced(const std::string& name) const {
  std::vector<std::pair<std::int64_t, double>> found;
  for (const std::string& line : run_.record.metrics) {
    const Json json = Json::parse(line);
    if (const auto value = json.find(name); value != json.end()) found.emplace_back(json["step"], value->is_null() ? unknown : value->get<double>());
  }
  return found;
}

void Arm::attach(const std::string& json) {
  internal_check(Json::accept(json), "an attachment that is no JSON: {}", json.substr(0, 60));
  if (!run_.repeats()) run_.record.attachments.push_back(json);
}

bool Arm::diverges(const Gradients& step, const std::function<Tensor()>& loss) {
  if (!run_.watch.diverged(run_.step, step.loss(), step.norm())) return false;
  diverged(run_.step, run_.watch.reason(loss));
  return true;
}

void Arm::diverged(std::int64_t step, const std::string& reason) {
  check(run_.record.status != Status::diverged, "[diverged] expected one divergence an arm, got a second at step {}", step);
  run_.record.status = Status::diverged;
  run_.record.reason = one_line(reason);
  set_value(run_.record.values, diverged_at, static_cast<double>(step));
  run_.record.metrics.push_back(line_of({{"step", step}, {diverged_at, step}, {"divergence", reason}}));
  if (std::error_code none; run_.leaves_files) std::filesystem::remove(weights_file(), none);
}

DivergenceWatch& Arm::watch() const { return run_.watch; }

void Arm::warn(const std::string& text) { run_.warning = text; }

void Arm::note(const std::string& text) { run_.note(text); }

}  // namespace plumb::lab
