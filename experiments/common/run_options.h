// The options that every experiment shares.
//
//   struct DepthOptions : RunOptions { std::vector<std::int64_t> depths{6, 24, 48}; };
//   cli.section("Axes");
//   cli.option("--depths", &o.depths, "Residual blocks").at_least(1);
//   add_run_options(cli, o, {.data = data_set_names()});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumb::lab {

class Cli;

// Of a width or a depth: far beyond any machine, and products of such sizes do not overflow.
inline constexpr double largest_size = 1 << 20;

struct RunOptions {
  std::vector<std::int64_t> seeds{0};

  std::int64_t steps = 200;  // optimizer steps of a run
  std::int64_t warmup = 0;   // of these, steps in which the learning rate rises
  std::int64_t batch = 64;   // samples in a step
  std::string data = "glyphs";
  std::string data_dir;         // "": where the data set looks by itself
  double validation_split = 0;  // share of the training images to validate on; 0: the published test set (data/split.h)
  std::string dtype = "fp32";
  std::string device = "cpu";
  std::string deterministic = "threads";
  std::optional<std::int64_t> threads;  // nothing: all that this process may use

  std::string out;  // "": a new folder under runs/
  bool resume = false, overwrite = false, dry_run = false, no_progress = false, json = false;
  bool profile = false;  // training_step.h
};

// The names that --data, --dtype and --device take.
struct RunChoices {
  std::vector<std::string> data{"glyphs"};
  std::vector<std::string> dtypes{"fp32", "bf16", "fp64"};
  std::vector<std::string> devices{"cpu"};
  std::int64_t least_steps = 1;
};

// Adds them to the sections Axes, Training, Machine and Output, with the rules that --warmup fits into --steps, that --resume and
// --overwrite exclude each other and name their folder, and that runs have the steps that --profile is about.
void add_run_options(Cli& cli, RunOptions& options, const RunChoices& choices = {});

}  // namespace plumb::lab
