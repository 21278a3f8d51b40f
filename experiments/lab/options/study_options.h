// The options that every experiment shares.
//
//   StudyOptions o;
//   cli.section("Axes");
//   cli.option("--depths", &depths, "Residual blocks").at_least(1);
//   o.declare(cli, {.data = {"glyphs", "fashion"}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/data/image_set.h"
#include "experiments/lab/data/open_data.h"
#include "experiments/lab/options/device.h"

namespace plumb::lab {

class Cli;

// What --data, --dtype and --device take.
struct StudyChoices {
  std::vector<std::string> data = data_set_names();
  std::vector<NumberFormat> dtypes = enum_values<NumberFormat>();
  std::vector<DeviceChoice> devices = enum_values<DeviceChoice>();
  std::int64_t least_steps = 1;
};

// The steps that --profile is about, counted from 0: the first ones take memory from the system and compile kernels.
inline constexpr std::int64_t first_profiled_step = 3, last_profiled_step = 7;

// What a call does with the folder of its study: it begins, goes on, begins anew, only looks (--dry-run), writes tables
// anew, or repeats one trial.
enum class Mode { run, resume, overwrite, dry_run, rebuild, replay };

// Of a width or a depth: far beyond any machine, and products of such sizes do not overflow.
inline constexpr double largest_size = 1 << 20;

struct StudyOptions {
  std::vector<std::int64_t> seeds{0};

  std::int64_t steps = 200;  // optimizer steps of a run
  std::optional<std::int64_t> warmup =
      0;  // of these, steps in which the learning rate rises; nothing: as the recipe of the network has it. A
          // default is for the default steps, and keeps its share of them where others are given
  std::optional<double> warmup_share = {};  // that share, set when the command line is read and does not give --warmup
  std::int64_t batch = 64;                  // samples in a step
  std::string data = "glyphs";
  std::string data_dir;      // "": where the data set looks by itself
  std::string image_folder;  // "": none; else data is image-folder, and this data_dir
  std::optional<std::int64_t> image_size =
      224;                        // side of what an image folder's become; nothing: as they are (FolderOptions)
  std::int64_t train_images = 0;  // how many images to train on, 0: all
  double image_crop = 1;          // data/image_folder.h
  NormalizationKind normalization = NormalizationKind::data;
  double validation_split = 0;  // share of the training images to validate on; 0: the published test set (data/split.h)
  NumberFormat dtype = NumberFormat::fp32;
  DeviceChoice device = DeviceChoice::cpu;  // once the command line is read, not automatic
  Determinism deterministic = Determinism::strict;
  std::optional<std::int64_t> threads;  // nothing: all that this process may use
  double loss_limit = 10;               // divergence.h

  std::int64_t eval_every = 0,
               eval_images = 0;  // steps between evaluations, 0: only at the end; images of each, 0: all

  std::int64_t jobs = 1;        // trials side by side
  std::string shard;            // "2/5"; "": all trials
  double checkpoint_every = 5;  // minutes; 0: never
  bool stop_hopeless = false, save_weights = false, tensorboard = false;

  std::string out;  // "": a new folder under runs/
  bool resume = false, overwrite = false, dry_run = false, no_progress = false, json = false;
  bool profile = false;     // training_step.h
  std::string accept_code;  // hash of other code whose trials count, too
  bool rebuild = false;     // tables and report alone
  std::string replay;       // label of a trial

  Mode mode() const { return dry_run ? Mode::dry_run : mode_without_dry_run(); }
  Mode mode_without_dry_run() const {
    return rebuild           ? Mode::rebuild
           : !replay.empty() ? Mode::replay
           : resume          ? Mode::resume
           : overwrite       ? Mode::overwrite
                             : Mode::run;
  }

  // What of all trials is for this call: those whose number, counted from 0, is `index` modulo `count`.
  struct Shard {
    std::int64_t index = 0, count = 1;
    bool has(std::size_t number) const { return static_cast<std::int64_t>(number) % count == index; }
  };
  Shard shard_of_call() const;  // throws UsageError for another form than I/N with I in 1..N

  // Declares them in the sections Axes, Training, Machine, Sweep and Output, with the rules that --warmup fits into
  // --steps, that --resume and
  // --overwrite exclude each other and name their folder, that runs have the steps that --profile is about, and that
  // what runs side by side has the bits that it has alone.
  void declare(Cli& cli, const StudyChoices& choices = {});
};

// The name of before, for one version.
using RunOptions [[deprecated("StudyOptions")]] = StudyOptions;

}  // namespace plumb::lab
