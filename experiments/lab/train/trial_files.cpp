// The files of a trial: checkpoint and weights.
#include "core/device_lost.h"
#include "core/one_line.h"
#include "experiments/lab/run/files.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/train/trial_state.h"
#include "nn/io/pretrained.h"
#include "nn/io/weights.h"
#include "nn/optim/checkpoint.h"

namespace plumb::lab {

std::filesystem::path TrialState::checkpoint_file() const {
  return lab::checkpoint_file(env.folder, record.point, key);
}

std::filesystem::path TrialState::weights_file() const { return lab::weights_file(env.folder, record.point); }

TrialCheckpoint TrialState::state() const {
  return {.key = key,
          .code = env.code,
          .machine = env.machine,
          .step = record.steps,
          .record = record,
          .recent = watch.recent(),
          .entropies = watch.recent_entropies(),
          .reached = levels.reached(),
          .tensors = nn::training_state(*tracked.model, *tracked.optimizer, tracked.ema)};
}

void TrialState::save_checkpoint() {
  if (!tracked.model || !limits.leaves_files || options.checkpoint_every == 0) return;
  settle();
  if (record.status == Status::diverged || record.steps == 0 || watch.is_bad()) return;
  write_state();
}

void TrialState::write_state() {
  checkpointed_ = Clock::now();
  try {
    write_checkpoint(checkpoint_file(), state());
    checkpoint_written_ = true;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {  // a checkpoint that cannot be written must not end the training
    note(fmt::format("no checkpoint saved for {}: {}", record.point.label(), one_line(e.what())));
  }
}

// The checkpoint of the trial in the study folder, if the trial can continue from it. A checkpoint that does not fit is
// renamed and kept.
std::optional<TrialCheckpoint> TrialState::read_checkpoint_of_folder() const {
  const std::filesystem::path file = checkpoint_file();
  if (!limits.leaves_files || !std::filesystem::exists(file)) return std::nullopt;
  std::string kept = "damaged";
  try {
    TrialCheckpoint found = read_checkpoint(file);
    kept = found.code;
    check(found.key == key && found.record.point == record.point && found.record.steps <= options.steps,
          "{}: the checkpoint has other settings or data", file.string());
    check(found.code == env.code, "{}: the checkpoint is from other code ({}, this is {})", file.string(), found.code,
          env.code);
    if (found.machine != env.machine)
      note(fmt::format("{} continues from step {} on another machine ({}; before: {})", record.point.label(),
                       found.step, env.machine, found.machine));
    return found;
  } catch (const Error& e) {
    note(fmt::format("{} starts from the beginning: {}", record.point.label(), one_line(e.what())));
    set_aside(kept);
    return std::nullopt;
  }
}

void TrialState::set_aside(const std::string& mark) const {
  const std::filesystem::path file = checkpoint_file();
  std::error_code none;
  std::filesystem::rename(
      file, file.parent_path() / fmt::format("{}-{}.safetensors", file.stem().string(), mark_of_checkpoint(mark)),
      none);
}

void TrialState::restore() {
  const std::optional<TrialCheckpoint> found = limits.start_from ? std::nullopt : read_checkpoint_of_folder();
  const TrialCheckpoint* from = limits.start_from ? limits.start_from : found ? &*found : nullptr;
  if (!from && limits.finished)
    note(fmt::format(
        "the weights of {0} were not saved and {0} has no checkpoint, so it trains again; its results stay. Without "
        "--save-weights, --resume leaves the weights out",
        record.point.label()));
  if (!from) return;
  try {
    nn::load_training_state(from->tensors, fmt::format("[checkpoint] {}", record.point.label()), *tracked.model,
                            *tracked.optimizer, tracked.ema);
  } catch (const Error&) {  // the body has changed; the next call starts from the beginning
    if (found) set_aside("unfit");
    throw;
  }
  record = from->record;
  record.status = Status::ok;
  record.weights_saved.reset();
  watch.set_recent(from->recent, from->entropies);
  levels.set_reached(from->reached);
  restored_ = true;
  if (env.progress) env.progress->goes_on(place, record.steps);
}

std::pair<std::map<std::string, std::string>, std::string> TrialState::weights_metadata() const {
  try {
    return {env.problem.weights_metadata(*tracked.model), ""};
  } catch (const Error& e) {
    return {nn::metadata_without_card(e.what()), e.what()};
  }
}

void TrialState::save_weights() {
  if (!options.save_weights || !limits.leaves_files || !tracked.model) return;
  const std::filesystem::path file = weights_file();
  try {
    std::optional<nn::EmaScope> averaged;
    if (tracked.ema) averaged.emplace(*tracked.ema);
    std::filesystem::create_directories(file.parent_path());
    nn::save_weights(*tracked.model, file, tracked.names, weights_metadata().first);
    record.weights_saved = true;
    return;
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {  // the trial keeps its measured values
    note(fmt::format("no weights saved for {}: {}", record.point.label(), one_line(e.what())));
  }
  record.weights_saved = false;
  write_state();
}

}  // namespace plumb::lab
