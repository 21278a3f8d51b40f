#include "experiments/common/run_options.h"

#include "experiments/common/cli.h"
#include "experiments/common/training_step.h"

namespace plumb::lab {

void add_run_options(Cli& cli, RunOptions& o, const RunChoices& choices) {
  cli.section("Axes");
  cli.option("--seeds", &o.seeds, "Seeds; each is a run of its own").at_least(0);

  cli.section("Training");
  cli.option("--steps", &o.steps, "Optimizer steps of a run").at_least(static_cast<double>(choices.least_steps)).at_most(4294967295.0);
  cli.option("--warmup", &o.warmup, "First steps, in which the learning rate rises").at_least(0);
  cli.option("--batch", &o.batch, "Samples in a step").at_least(1).at_most(1 << 20);
  cli.option("--data", &o.data, "Data set").one_of("data set", choices.data);
  cli.option("--data-dir", &o.data_dir, "Folder with the files of the data set").value_name("DIR");
  cli.option("--validation-split", &o.validation_split,
             "Share of the training images, drawn by class, to validate on, so that the test set stays unseen; 0: validate on the published test set")
      .at_least(0)
      .below(1);

  cli.section("Machine");
  cli.option("--dtype", &o.dtype, "Number format; bf16: of what is multiplied, sums and all else stay f32").one_of("dtype", choices.dtypes);
  cli.option("--device", &o.device, "Where to compute").one_of("device", choices.devices);
  cli.option("--deterministic", &o.deterministic, "The same bits for the same number of threads, or strictly for any")
      .one_of("kind", {"threads", "strict"});
  cli.option("--threads", &o.threads, "CPU threads").at_least(1).at_most(256).or_word("all").decides_speed_only();

  cli.section("Output");
  cli.option("--out", &o.out, "Folder of the results; a new one under runs/ by default").value_name("DIR").decides_nothing_later();
  cli.option("--resume", &o.resume, "Finish what the folder --out holds").decides_nothing_later();
  cli.option("--overwrite", &o.overwrite, "Delete the results that the folder --out holds").decides_nothing_later();
  cli.option("--dry-run", &o.dry_run, "Check all that can be checked, list the runs and what they cost, and start none").decides_nothing_later();
  cli.option("--json", &o.json, "Print the result as JSON").decides_nothing_later();
  cli.option(
         "--profile", &o.profile,
         fmt::format("Time steps {} to {} of the first run by kernel and module: a table on stderr and in profile.txt, and a trace for Perfetto in "
                     "profile.json",
                     StepProfile::first, StepProfile::last))
      .decides_nothing_later();
  cli.option("--no-progress", &o.no_progress, "No progress bar, only a line for each finished run").decides_nothing_later();

  cli.rule([&o] {
    usage_check(o.warmup <= o.steps, "--warmup {} is longer than --steps {}", o.warmup, o.steps);
    usage_check(!(o.resume && o.overwrite), "--resume and --overwrite exclude each other; give one");
    usage_check(!(o.resume || o.overwrite) || !o.out.empty(), "{} needs --out DIR, the folder it is about", o.resume ? "--resume" : "--overwrite");
    usage_check(!o.profile || o.steps > StepProfile::first, "--profile is about steps {} to {}, counted from 0; give --steps of at least {}, got {}",
                StepProfile::first, StepProfile::last, StepProfile::first + 1, o.steps);
  });
}

}  // namespace plumb::lab
