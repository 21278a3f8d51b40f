// The command-line options that every experiment has.
//
//   StudyOptions o;
//   cli.section("Axes");
//   cli.option("--depths", &depths, "Residual blocks").at_least(1);
//   o.declare(cli);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/options/device.h"

namespace plumb::lab {

class Cli;

// The steps that --profile times, counted from 0. Earlier steps are left out, because they allocate memory and compile
// kernels.
inline constexpr std::int64_t first_profiled_step = 3, last_profiled_step = 7;

// The use that a call makes of the study folder:
//   run        starts the study
//   resume     resumes the study
//   overwrite  deletes the results of the study and starts again
//   dry_run    only checks the call (--dry-run)
//   rebuild    writes tables and report again
//   replay     repeats one trial
enum class Mode { run, resume, overwrite, dry_run, rebuild, replay };

// The largest width or depth that options accept. The size is too large for any machine, but products of such sizes do
// not overflow.
inline constexpr double largest_size = 1 << 20;

// The values of the options. Each member is named after its option.
struct StudyOptions {
  std::vector<std::int64_t> seeds{0};
  std::int64_t steps = 200;      // number of optimizer steps of a trial
  std::int64_t least_steps = 1;  // the smallest value that --steps accepts
  // The number of steps in which the learning rate rises. If there is no value, the recipe of the network decides. A
  // default warm-up belongs to the default number of steps; if the user gives only --steps, the warm-up keeps its share
  // of the steps.
  std::optional<std::int64_t> warmup = 0;
  // The share of the warm-up in the steps of a trial. parse() sets `warmup_share` if the program has a default warm-up
  // and the user does not give --warmup.
  std::optional<double> warmup_share = {};
  std::int64_t batch = 64;  // number of samples per step
  NumberFormat dtype = NumberFormat::fp32;
  DeviceChoice device = DeviceChoice::cpu;  // never DeviceChoice::automatic after parse()
  Determinism deterministic = Determinism::strict;
  std::optional<std::int64_t> threads;  // no value: all CPU threads that this process may use
  double loss_limit = 10;               // limit of DivergenceWatch (train/divergence.h)

  std::int64_t eval_every = 0;  // number of steps between evaluations; 0: evaluate only at the end

  std::int64_t jobs = 1;        // number of trials that run at the same time
  std::string shard;            // a shard such as "2/5"; "": all trials
  double checkpoint_every = 5;  // in minutes; 0: no checkpoints
  bool stop_hopeless = false, save_weights = false, tensorboard = false;

  std::string out;  // folder of the study; "": a new folder under runs/
  bool resume = false, overwrite = false, dry_run = false, no_progress = false, json = false;
  bool profile = false;     // times the steps first_profiled_step to last_profiled_step
  std::string accept_code;  // hash of other code; trials that this code computed are accepted as well
  bool rebuild = false;     // writes only tables and report
  std::string replay;       // label of the trial that is repeated

  // The use that the call makes of the study folder.
  Mode mode() const { return dry_run ? Mode::dry_run : mode_without_dry_run(); }
  // The mode of the same call without --dry-run.
  Mode mode_without_dry_run() const {
    return rebuild           ? Mode::rebuild
           : !replay.empty() ? Mode::replay
           : resume          ? Mode::resume
           : overwrite       ? Mode::overwrite
                             : Mode::run;
  }

  // A part of the trials of a study: the trials whose number, counted from 0, is `index` modulo `count`.
  struct Shard {
    std::int64_t index = 0, count = 1;
    // Whether the trial of this number belongs to the shard.
    bool has(std::size_t number) const { return static_cast<std::int64_t>(number) % count == index; }
  };
  // The shard that --shard names. Throws UsageError if `shard` does not have the form I/N with I in 1..N.
  Shard shard_of_call() const;

  // Declares the options in the sections Axes, Training, Machine, Sweep and Output, and rules for these options. The
  // rules throw UsageError in these cases, for example: --warmup is longer than --steps; --resume and --overwrite are
  // both given, or one of them is given without --out; the trials are too short for --profile; --jobs would change the
  // results.
  void declare(Cli& cli);

 private:
  void declare_training(Cli& cli);
  void declare_machine(Cli& cli);
  void declare_sweep(Cli& cli);
  void declare_output(Cli& cli);
  void add_rules(Cli& cli);
};

}  // namespace plumb::lab
