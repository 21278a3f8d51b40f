#include "experiments/lab/options/study_options.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <memory>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/device.h"

namespace plumb::lab {

StudyOptions::Shard StudyOptions::shard_of_call() const {
  if (shard.empty()) return {};
  Shard part;
  const char *at = shard.data(), *end = at + shard.size();
  const auto first = std::from_chars(at, end, part.index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, part.count) : first;
  usage_check(slash && second.ec == std::errc() && second.ptr == end && 1 <= part.index && part.index <= part.count,
              "--shard expects I/N with I in 1..N, such as 2/5, got '{}'", shard);
  --part.index;
  return part;
}

void StudyOptions::declare(Cli& cli, const StudyChoices& choices) {
  cli.section("Axes");
  cli.option("--seeds", &seeds, "Seeds; each is a run of its own").at_least(0).scope(Scope::study);

  cli.section("Training");
  cli.option("--steps", &steps, "Optimizer steps of a run")
      .at_least(static_cast<double>(choices.least_steps))
      .at_most(4294967295.0);
  const std::string rising = "First steps, in which the learning rate rises";
  if (warmup)
    cli.option("--warmup", &warmup, rising).at_least(0);
  else
    cli.option("--warmup", &warmup, rising + "; recipe: as --recipe has it").at_least(0).or_word("recipe");
  cli.option("--batch", &batch, "Samples in a step").at_least(1).at_most(1 << 20);
  cli.option("--data", &data, "Data set").one_of("data set", choices.data).scope(Scope::run);
  cli.option("--data-dir", &data_dir, "Folder with the files of the data set").value_name("DIR").scope(Scope::speed);
  cli.option("--image-folder", &image_folder,
             "Images by class, PNG or JPEG, in DIR/train/CLASS and DIR/val/CLASS, or DIR/CLASS: the same as --data "
             "image-folder --data-dir DIR")
      .value_name("DIR")
      .scope(Scope::speed);
  cli.option("--image-size", &image_size,
             "Side to which the images of an image folder are resized; native: that of the first training image, its "
             "shorter one")
      .at_least(1)
      .at_most(4096)
      .or_word("native")
      .scope(Scope::run);
  cli.option("--image-crop", &image_crop, "Share of an evaluated image's shorter side that is kept, in the middle")
      .at_least(0.05)
      .at_most(1)
      .scope(Scope::run);
  cli.option("--normalization", &normalization,
             "Means and deviations of pixels: the training images' own, ImageNet's, or one half; of an image folder "
             "ImageNet's")
      .one_of("normalization")
      .scope(Scope::run);
  cli.option("--train-images", &train_images, "Train on so many images, drawn by class; 0: all")
      .at_least(0)
      .scope(Scope::run);
  cli.option("--validation-split", &validation_split,
             "Share of the training images, drawn by class, to validate on, so that the test set stays unseen; 0: "
             "validate on the published test set")
      .at_least(0)
      .below(1)
      .scope(Scope::run);
  cli.option("--loss-limit", &loss_limit,
             "A loss that stays above so many times chance for 20 steps has diverged; 0: only one that is not finite")
      .at_least(0);
  cli.option("--eval-every", &eval_every, "Steps between evaluations while it trains; 0: only at the end").at_least(0);
  cli.option("--eval-images", &eval_images, "Images of each evaluation, the first of the validation set; 0: all")
      .at_least(0);

  cli.section("Machine");
  cli.option("--dtype", &dtype, "Number format; bf16: of what is multiplied, sums and all else stay f32")
      .one_of("dtype", choices.dtypes)
      .scope(Scope::run);
  cli.option("--device", &device, "Where to compute; auto: cuda, where there is such a device, else cpu")
      .one_of("device", choices.devices)
      .scope(Scope::run);
  cli.option("--deterministic", &deterministic, "The same bits for the same number of threads, or strictly for any")
      .one_of("kind")
      .scope(Scope::run);
  cli.option("--threads", &threads, "CPU threads").at_least(1).at_most(256).or_word("all").scope(Scope::speed);

  cli.section("Sweep");
  cli.option("--jobs", &jobs, "Runs side by side, among which the threads are shared out")
      .at_least(1)
      .at_most(256)
      .scope(Scope::speed);
  cli.option("--shard", &shard,
             "Only the I-th of N parts of the runs, into a folder of its own; bin/merge puts such folders together")
      .value_name("I/N")
      .scope(Scope::speed);
  cli.option("--checkpoint-every", &checkpoint_every,
             "Minutes after which the state of a run is saved, for --resume to go on from; 0: never")
      .at_least(0)
      .scope(Scope::speed);
  cli.option("--stop-hopeless", &stop_hopeless,
             "Stop a run whose mean loss over 20 steps, after half of its steps (20 or more), is still at least 98 % "
             "of chance; it counts as unfinished")
      .scope(Scope::call);
  cli.option("--accept-code", &accept_code, "Use runs of the folder that code of this hash has computed, too")
      .value_name("HASH")
      .scope(Scope::call);

  cli.section("Output");
  cli.option("--out", &out, "Folder of the results; a new one under runs/ by default")
      .value_name("DIR")
      .scope(Scope::call);
  cli.option("--resume", &resume, "Finish what the folder --out holds").scope(Scope::call);
  cli.option("--overwrite", &overwrite, "Delete the results that the folder --out holds").scope(Scope::call);
  cli.option("--dry-run", &dry_run, "Check all that can be checked, list the runs and what they cost, and start none")
      .scope(Scope::call);
  cli.option("--json", &json, "Print the result as JSON").scope(Scope::call);
  cli.option("--profile", &profile,
             fmt::format("Time steps {} to {} of the first run by kernel and module: a table on stderr and in "
                         "profile.txt, and a trace for Perfetto in "
                         "profile.json",
                         first_profiled_step, last_profiled_step))
      .scope(Scope::call);
  cli.option("--save-weights", &save_weights,
             "Save each run's weights as they are evaluated, in weights/ as safetensors")
      .scope(Scope::call);
  cli.option("--tensorboard", &tensorboard, "Write each finished run's numbers for TensorBoard, in tensorboard/")
      .scope(Scope::call);
  cli.option("--no-progress", &no_progress, "No progress bar, only a line for each finished run").scope(Scope::call);
  cli.section(Cli::instead);
  cli.option("--rebuild", &rebuild, "Write tables and report of --out anew from its ledger").scope(Scope::call);
  cli.option("--replay", &replay,
             "Repeat the end of a diverged run of --out in f32 and f64, and say what went wrong; the run as --dry-run "
             "prints it")
      .value_name("RUN")
      .scope(Scope::call);

  const auto defaults = std::make_shared<std::pair<std::int64_t, std::int64_t>>();
  cli.when_defaults_are_set([this, defaults] { *defaults = {steps, warmup.value_or(0)}; });
  cli.rule([this, &cli, defaults] {
    if (const auto [of_steps, rising_steps] = *defaults;
        rising_steps > 0 && cli.has("--warmup") && !cli.given("--warmup")) {
      warmup_share = static_cast<double>(rising_steps) / static_cast<double>(of_steps);
      warmup = std::llround(*warmup_share * static_cast<double>(steps));
      if (steps != of_steps)
        cli.explain("--warmup", fmt::format("{:.3g} % of the steps, as by default", 100 * *warmup_share));
    }
    // A configuration has all three; what is typed beats it.
    if (cli.typed("--image-folder") && !image_folder.empty()) {
      usage_check(!cli.typed("--data") || data == "image-folder", "--image-folder is a data set; leave --data {} out",
                  data);
      usage_check(!cli.typed("--data-dir"), "--image-folder and --data-dir exclude each other; give one");
      data = "image-folder", data_dir = image_folder;
    } else {
      image_folder = data == "image-folder" ? data_dir : "";
    }
    const bool in_files = data == "image-folder";
    for (const char* option : {"--image-size", "--image-crop"})
      usage_check(in_files || !cli.typed(option), "{} is about images in files; give --image-folder with it", option);
    if (in_files && !cli.given("--normalization")) normalization = NormalizationKind::imagenet;
    if (device == DeviceChoice::automatic) {
      device = best_device();  // settings, keys and reports have what was taken
      if (cli.has("--device") && !cli.given("--device")) cli.explain("--device", "ours: auto, what there is");
    }
    usage_check(warmup.value_or(0) <= steps || !cli.left_out().empty(), "--warmup {} is longer than --steps {}",
                warmup.value_or(0), steps);
    std::vector<const char*> modes;
    for (const auto& [on, option] : {std::pair(resume, "--resume"),
                                     {overwrite, "--overwrite"},
                                     {rebuild, "--rebuild"},
                                     {!replay.empty(), "--replay"}})
      if (on) modes.push_back(option);
    usage_check(modes.empty() || !out.empty(), "{} needs --out DIR, the folder it is about",
                modes.empty() ? "" : modes.front());
    if (dry_run && (rebuild || !replay.empty())) modes.push_back("--dry-run");
    usage_check(modes.size() <= 1, "{} exclude each other; give one", fmt::join(modes, " and "));
    usage_check(jobs == 1 || deterministic == Determinism::strict,
                "--jobs {} changes the threads of a run, and with --deterministic threads its bits; give "
                "--deterministic strict or --jobs 1",
                jobs);
    usage_check(jobs == 1 || !profile, "--profile is about one run at a time, got --jobs {}", jobs);
    shard_of_call();
    usage_check(!stop_hopeless || steps >= 40,
                "--stop-hopeless{} looks at 20 steps in the first half of a run; give --steps of at least 40{}, got {}",
                cli.given("--stop-hopeless") ? "" : ", which is on unless --no-stop-hopeless is given,",
                cli.given("--stop-hopeless") ? "" : " or --no-stop-hopeless", steps);
    usage_check(!profile || steps > first_profiled_step,
                "--profile is about steps {} to {}, counted from 0; give --steps of at least {}, got {}",
                first_profiled_step, last_profiled_step, first_profiled_step + 1, steps);
  });
}

}  // namespace plumb::lab
