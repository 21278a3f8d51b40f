#include "experiments/lab/options/study_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/nearest.h"
#include "core/one_line.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/budget.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/options/shard.h"

namespace plumb::lab {
namespace {

// The description of the study in --out if the call continues a study of this program, else "".
std::string study_to_continue(const Cli& cli, const Cli::TypedValue& typed) {
  if (typed("--out").empty() ||
      (typed("--resume") != "true" && typed("--rebuild") != "true" && typed("--replay").empty()))
    return "";
  const std::filesystem::path file = std::filesystem::path(typed("--out")) / "run.json";
  std::error_code none;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, none))) return "";
  const std::string text = read_file(file);
  const auto run = nlohmann::json::parse(shallow_json(text, file.string()), nullptr, false);
  const bool ours = run.is_object() && run.value("experiment", nlohmann::json()) == cli.experiment() &&
                    run.value("settings", nlohmann::json()).is_object();
  return ours ? file.string() : "";
}

// Throws UsageError if a call with --resume names no study, and has no settings for a new study. Such a call has a
// mistyped folder.
void check_study_to_resume(const Cli& cli, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code none;
  const bool has_settings = std::ranges::any_of(cli.typed_options(), [&](const std::string& option) {
    return option == "--config" || cli.declared(option)->scope() != Scope::call;
  });
  // StudyFolder refuses a folder with other files, and tells what to do if only run.json is lost.
  if (has_settings || (fs::is_directory(out, none) && !fs::is_empty(out, none))) return;
  const fs::path typed(out), folder = typed.has_filename() ? typed : typed.parent_path(), parent = folder.parent_path();
  std::vector<std::string> studies;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, none), end; !none && it != end; it.increment(none))
    if (fs::exists(it->path() / "run.json", none)) studies.push_back(it->path().filename().string());
  std::ranges::sort(studies);
  const std::string near = nearest_name(folder.filename().string(), studies);
  throw UsageError(fmt::format("--resume: {} {}; {}", out, fs::exists(folder, none) ? "has no study" : "does not exist",
                               near.empty() ? "give the folder of a study, or the settings of a new study"
                                            : fmt::format("did you mean --out {}?", (parent / near).string())));
}

// Prints the paths that a call with --resume or --replay takes from the settings of the study.
void announce_paths(const Cli& cli, const std::string& out) {
  std::set<std::string> announced;
  for (const CliOption* option : cli.paths_in_config())
    if (announced.insert(option->text()).second)
      note_error(fmt::format("reads {}: {} in the settings of {}\n", printable(option->text()), option->name, out));
}

}  // namespace

void StudyOptions::declare_training(Cli& cli) {
  cli.section("Training");
  cli.option("--steps", &steps, "Optimizer steps of a trial")
      .at_least(static_cast<double>(least_steps))
      .at_most(4294967295.0);
  const std::string rising = "Warm-up: number of first steps, in which the learning rate rises";
  if (warmup)
    cli.option("--warmup", &warmup, rising).at_least(0);
  else
    cli.option("--warmup", &warmup, rising + "; recipe: as set by --recipe").at_least(0).or_word("recipe");
  cli.option("--batch", &batch, "Samples per step").at_least(1).at_most(1 << 20);
  cli.option(
         "--loss-limit", &loss_limit,
         "A trial has diverged if its loss is above this limit times the chance loss (of the best constant guess) for "
         "20 steps in a row; 0: only if its loss or gradient is not finite")
      .at_least(0);
  cli.option("--eval-every", &eval_every, "Training steps between evaluations; 0: evaluate only at the end")
      .at_least(0);
}

void StudyOptions::declare_machine(Cli& cli) {
  cli.section("Machine");
  cli.option("--dtype", &dtype, "Number format (bf16: only the operands of matrix products, all other values are f32)")
      .one_of("dtype")
      .scope(Scope::run);
  cli.option("--device", &device, "Device that computes (auto: cuda if it can be used, otherwise cpu)")
      .one_of("device")
      .scope(Scope::run);
  cli.option("--deterministic", &deterministic,
             "Calls that give bit-identical results (threads: those with the same number of threads; strict: all)")
      .one_of("kind")
      .scope(Scope::run);
  cli.option("--threads", &threads, "Number of CPU threads")
      .at_least(1)
      .at_most(256)
      .or_word("all")
      .scope(Scope::speed);
}

void StudyOptions::declare_sweep(Cli& cli) {
  cli.section("Sweep");
  cli.option("--jobs", &jobs, "Number of trials that run at the same time and share the CPU threads")
      .at_least(1)
      .at_most(256)
      .scope(Scope::speed);
  cli.option("--shard", &shard,
             "Run only the I-th of N parts of the trials; give each part a different --out, and join the folders with "
             "bin/merge")
      .value_name("I/N")
      .scope(Scope::speed);
  cli.option("--until-decided", &until_decided,
             "Train further seeds in rounds, until each claim is decided or would need more than 48 seeds; without "
             "claims, until each comparison with the control is")
      .scope(Scope::speed);
  cli.option("--budget", &budget,
             "With --until-decided: end this call after a number of trials, such as 50, or begin no further trial after a "
             "number of hours, such as 4h; --resume goes on")
      .value_name("N|Nh")
      .scope(Scope::call);
  cli.option("--checkpoint-every", &checkpoint_every,
             "Minutes between saves of the state of a running trial, from which --resume continues; 0: never")
      .at_least(0)
      .scope(Scope::speed);
  cli.option("--stop-hopeless", &stop_hopeless,
             "Stop a trial after half of its steps if its mean loss over the last 20 steps is still at least 98 % of "
             "the chance loss, both above the entropy of smoothed or mixed labels; the trial counts as unfinished")
      .scope(Scope::call);
  cli.option("--accept-code", &accept_code, "Also use trials in the folder that were computed by code with this hash")
      .value_name("HASH")
      .scope(Scope::call);
}

void StudyOptions::declare_output(Cli& cli) {
  cli.section("Output");
  cli.option("--out", &out, "Folder for the results; by default a new folder under runs/")
      .path("DIR")
      .scope(Scope::call);
  cli.option("--resume", &resume, "Finish the study in the folder --out, with its settings").scope(Scope::call);
  cli.usual_config([&cli](const Cli::TypedValue& typed) { return study_to_continue(cli, typed); });
  cli.option("--overwrite", &overwrite, "Delete the results in the folder --out and start again").scope(Scope::call);
  cli.option("--dry-run", &dry_run,
             "Check the options and the data, list the trials and their cost, and start no trial")
      .scope(Scope::call);
  cli.option("--json", &json, "Print the result as JSON").scope(Scope::call);
  cli.option("--profile", &profile,
             fmt::format("Time steps {} to {} of the first trial by kernel and module; write a table to stderr and "
                         "profile.txt, and a trace for Perfetto to profile.json",
                         first_profiled_step, last_profiled_step))
      .scope(Scope::call);
  cli.option("--save-weights", &save_weights,
             "Save the evaluated weights of each trial in weights/, as safetensors files")
      .scope(Scope::call);
  cli.option("--tensorboard", &tensorboard, "Write the numbers of each finished trial for TensorBoard, in tensorboard/")
      .scope(Scope::call);
  cli.option("--no-progress", &no_progress, "Show no progress bar, only a line for each finished trial")
      .scope(Scope::call);
  cli.section(Cli::instead);
  cli.option("--rebuild", &rebuild, "Write the tables and the report of the study in --out again, from its ledger")
      .scope(Scope::call);
  cli.option("--replay", &replay,
             "Repeat the end of a diverged trial of the study in --out in f32 and f64, and report what went wrong; "
             "TRIAL is the label that --dry-run prints")
      .value_name("TRIAL")
      .scope(Scope::call);
}

void StudyOptions::add_rules(Cli& cli) {
  const auto defaults = std::make_shared<std::pair<std::int64_t, std::int64_t>>();
  cli.when_defaults_are_set([this, defaults] { *defaults = {steps, warmup.value_or(0)}; });
  cli.rule([this, &cli, defaults] {
    if (const auto [of_steps, rising_steps] = *defaults;
        rising_steps > 0 && cli.has("--warmup") && !cli.given("--warmup")) {
      warmup_share = static_cast<double>(rising_steps) / static_cast<double>(of_steps);
      warmup = std::llround(*warmup_share * static_cast<double>(steps));
      if (steps != of_steps)
        cli.explain("--warmup", fmt::format("{:.3g} % of the steps, the default share", 100 * *warmup_share));
    }
    if (device == DeviceChoice::automatic) {
      device = best_device();  // settings, keys and reports name the device in use
      if (cli.has("--device") && !cli.given("--device"))
        cli.explain("--device", "ours: auto, the device that can be used");
    }
    usage_check(warmup.value_or(0) <= steps || !cli.left_out().empty(), "--warmup {} is longer than --steps {}",
                warmup.value_or(0), steps);
    std::vector<const char*> modes;
    for (const auto& [on, option] : {std::pair(resume, "--resume"),
                                     {overwrite, "--overwrite"},
                                     {rebuild, "--rebuild"},
                                     {!replay.empty(), "--replay"}})
      if (on) modes.push_back(option);
    usage_check(modes.empty() || !out.empty(), "{} needs --out DIR, the folder of the study",
                modes.empty() ? "" : modes.front());
    if (dry_run && (rebuild || !replay.empty())) modes.push_back("--dry-run");
    usage_check(modes.size() <= 1, "{} exclude each other; give only one", fmt::join(modes, " and "));
    if (resume) check_study_to_resume(cli, out);
    if (resume || !replay.empty()) announce_paths(cli, out);
    usage_check(jobs == 1 || deterministic == Determinism::strict,
                "--jobs {} changes the number of threads of a trial, and with --deterministic threads that changes its "
                "result; give --deterministic strict or --jobs 1",
                jobs);
    usage_check(
        !until_decided || shard.empty(),
        "--until-decided needs the trials of all shards; train the shards without it, join them with bin/merge, "
        "and go on with --resume --until-decided in the merged folder");
    usage_check(budget.empty() || until_decided, "--budget ends the rounds of --until-decided; give that option, too");
    (void)budget_from(budget);  // throws for a wrong --budget
    usage_check(jobs == 1 || !profile, "--profile times one trial at a time; give --jobs 1, got --jobs {}", jobs);
    (void)shard_named(shard);
    usage_check(!stop_hopeless || rebuild || !replay.empty() || steps >= 40,
                "--stop-hopeless{} needs 20 steps in the first half of a trial; give --steps of at least 40{}, got {}",
                cli.given("--stop-hopeless") ? "" : " (on by default)",
                cli.given("--stop-hopeless") ? "" : " or --no-stop-hopeless", steps);
    usage_check(!profile || steps > first_profiled_step,
                "--profile times the steps {} to {}, counted from 0; give --steps of at least {}, got {}",
                first_profiled_step, last_profiled_step, first_profiled_step + 1, steps);
  });
}

void StudyOptions::declare(Cli& cli) {
  cli.section("Axes");
  cli.option("--seeds", &seeds, "Random seeds; each point of the study is trained once for each seed")
      .at_least(0)
      .scope(Scope::study);
  declare_training(cli);
  declare_machine(cli);
  declare_sweep(cli);
  declare_output(cli);
  add_rules(cli);
}

}  // namespace plumb::lab
