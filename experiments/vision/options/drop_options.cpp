#include "experiments/vision/options/drop_options.h"

#include "experiments/lab/cli/cli.h"

namespace plumb::vision {

void DropOptions::declare(Cli& cli) {
  cli.section("Dropping");
  cli.option("--drop-key", &drop_key, "DropKey: probability that a query loses a key").at_least(0).at_most(1);
  cli.option("--drop-key-schedule", &drop_key_schedule, "Schedule of --drop-key over depth").one_of("schedule");
  cli.option("--drop-key-shape", &drop_key_shape,
             "Shape of a drop (plain: a single key; block: a square of patches; cross: stripes of patches)")
      .one_of("shape");
  cli.option("--drop-key-window", &drop_key_window,
             "Side of a block or width of a cross, in patches; 0: 3 for a block, 1 for a cross")
      .at_least(0);
  cli.option("--drop-key-sharing", &drop_key_sharing,
             "Sharing of drop masks (per_entry: no sharing; heads: all heads share a mask; column: all queries share a "
             "mask)")
      .one_of("sharing");
  cli.option("--drop-key-match", &drop_key_match,
             "Meaning of --drop-key (rate: the probability for a key well inside the grid of patches; share: the "
             "expected share of patches that a query loses)")
      .one_of("match");
  cli.option("--empty-rows", &empty_rows,
             "Attention of a query that lost every allowed key (keep_all: to all of them; zero: none; paper: uniform, "
             "without gradients of the scores)")
      .one_of("policy");
  cli.option("--attn-drop", &attn_drop, "Dropout rate of the attention probabilities").at_least(0).below(1);
  cli.option("--drop-head", &drop_head,
             "DropHead: probability that a sample loses a head; it falls to 0 at mid-training and rises again")
      .at_least(0)
      .below(1);
  cli.option("--drop-path", &drop_path, "Stochastic depth: probability that a sample skips a branch")
      .at_least(0)
      .below(1);
  cli.option("--drop-path-schedule", &drop_path_schedule, "Schedule of --drop-path over depth").one_of("schedule");
  cli.option("--drop-path-form", &drop_path_form,
             "Branches that --drop-path scales (rescaled: the kept branches, in training; original: all branches, in "
             "evaluation, as in the paper)")
      .one_of("form");
  // A typed option without effect is a mistake: the study would train the control.
  cli.rule([this, &cli] {
    if (cli.has("--drop-key") && drop_key == 0)
      for (const char* option : {"--drop-key-schedule", "--drop-key-shape", "--drop-key-window", "--drop-key-sharing",
                                 "--drop-key-match", "--empty-rows"})
        usage_check(!cli.typed(option), "{} has no effect without --drop-key; give --drop-key RATE, or leave it out",
                    option);
    usage_check(
        !cli.typed("--drop-key-window") || !cli.has("--drop-key-shape") || drop_key_shape != DropShape::plain,
        "--drop-key-window has no effect on single keys; give --drop-key-shape block or cross, or leave it out");
    if (cli.has("--drop-path") && drop_path == 0)
      for (const char* option : {"--drop-path-schedule", "--drop-path-form"})
        usage_check(!cli.typed(option), "{} has no effect without --drop-path; give --drop-path RATE, or leave it out",
                    option);
  });
}

nn::DropKey DropOptions::key() const {
  return {.rate = drop_key,
          .schedule = drop_key_schedule,
          .empty = empty_rows,
          .shape = drop_key_shape,
          .window = drop_key_window,
          .sharing = drop_key_sharing,
          .match = drop_key_match};
}

nn::DropPathOptions DropOptions::path() const {
  return {
      .rate = drop_path,
      .schedule = drop_path_schedule == DropPathSchedule::uniform ? nn::Schedule::constant : nn::Schedule::increasing,
      .form = drop_path_form};
}

std::string DropOptions::describe_key(std::int64_t keys, KeyGrid grid) const {
  if (drop_key == 0) return "none";
  double ratio = 0;
  Estimate empty;
  try {
    const nn::DropKey k = nn::by_rate(key(), grid);
    ratio = nn::expected_drop_ratio(k, keys, grid);
    empty = nn::empty_row_probability(k, keys, grid);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  const std::string error = empty.standard_error > 0 ? fmt::format(" +- {:.1g}", empty.standard_error) : "";
  return fmt::format("{:g}, {}, {}{}, {}; expected share of keys {:.4g}, probability of an empty row {:.3g}{} ({})",
                     drop_key, enum_name(drop_key_schedule), enum_name(drop_key_shape),
                     drop_key_window ? fmt::format(" {}", drop_key_window) : "", enum_name(drop_key_sharing), ratio,
                     empty.value, error, enum_name(empty_rows));
}

std::string DropOptions::describe_path() const {
  if (drop_path == 0) return "none";
  return fmt::format("{:g}, {}, {}", drop_path, enum_name(drop_path_schedule), enum_name(drop_path_form));
}

}  // namespace plumb::vision
