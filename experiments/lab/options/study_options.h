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
  double loss_limit = 10;               // the trial has diverged if its loss stays above this limit times chance

  std::int64_t eval_every = 0;  // number of steps between evaluations; 0: evaluate only at the end

  std::int64_t jobs = 1;        // number of trials that run at the same time
  std::string shard;            // a shard such as "2/5"; "": all trials
  bool until_decided = false;   // trains further seeds until claims are decided (study/until_decided.h)
  std::string budget;           // of one call that trains until claims are decided; "": no limit
  double checkpoint_every = 5;  // in minutes; 0: no checkpoints
  bool stop_hopeless = false, save_weights = false, tensorboard = false;

  std::string out;  // folder of the study; "": a new folder under runs/
  bool resume = false, overwrite = false, dry_run = false, no_progress = false, json = false;
  bool profile = false;     // times the steps first_profiled_step to last_profiled_step
  std::string accept_code;  // hash of other code; trials that this code computed are accepted as well
  bool rebuild = false;     // writes only tables and report
  std::string replay;       // label of the trial that is repeated

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
