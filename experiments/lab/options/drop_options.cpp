#include "experiments/lab/options/drop_options.h"

#include "experiments/lab/cli/cli.h"

namespace plumb::lab {

void DropOptions::declare(Cli& cli) {
  cli.section("Dropping");
  cli.option("--drop-key", &drop_key, "DropKey: chance that a query loses a key").at_least(0).at_most(1);
  cli.option("--drop-key-schedule", &drop_key_schedule, "Its course over depth")
      .one_of("schedule", nn::drop_key_schedule_names(), nn::schedule_named);
  cli.option("--drop-key-shape", &drop_key_shape, "Single keys, or squares or stripes of patches")
      .one_of("shape", drop_shape_names(), drop_shape_named);
  cli.option("--drop-key-window", &drop_key_window, "Side of a block, width of a cross; 0: 3 and 1").at_least(0);
  cli.option("--drop-key-sharing", &drop_key_sharing, "A mask per entry, one for all heads, or one for all queries")
      .one_of("sharing", drop_sharing_names(), drop_sharing_named);
  cli.option("--drop-key-match", &drop_key_match,
             "What the chance is of: a key well inside the grid, or the share of patches that a query loses")
      .one_of("match", nn::drop_match_names(), nn::drop_match_named);
  cli.option("--empty-rows", &empty_rows, "What a query does that lost every key")
      .one_of("policy", empty_row_names(), empty_row_named);
  cli.option("--attn-drop", &attn_drop, "Dropout of attention probabilities").at_least(0).below(1);
  cli.option("--drop-head", &drop_head,
             "DropHead: chance that a sample loses a head, falling to 0 at mid-training and rising again")
      .at_least(0)
      .below(1);
  cli.option("--drop-path", &drop_path, "Stochastic depth: chance that a sample skips a branch").at_least(0).below(1);
  cli.option("--drop-path-schedule", &drop_path_schedule, "Its course over depth")
      .one_of("schedule", nn::drop_path_schedule_names(), nn::schedule_named);
  cli.option("--drop-path-form", &drop_path_form,
             "Rescale kept branches in training, or all in evaluation as its paper does")
      .one_of("form", nn::drop_path_form_names(), nn::drop_path_form_named);
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
  return {.rate = drop_path, .schedule = drop_path_schedule, .form = drop_path_form};
}

std::string DropOptions::describe_key(std::int64_t keys, KeyGrid grid) const {
  if (drop_key == 0) return "none";
  double ratio = 0;
  nn::Estimate empty{};
  try {
    const nn::DropKey k = nn::by_rate(key(), grid);
    ratio = nn::expected_drop_ratio(k, keys, grid);
    empty = nn::empty_row_probability(k, keys, grid);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  const std::string error = empty.standard_error > 0 ? fmt::format(" +- {:.1g}", empty.standard_error) : "";
  return fmt::format("{:g}, {}, {}{}, {}; expected share of keys {:.4g}, chance of an empty row {:.3g}{} ({})",
                     drop_key, nn::name(drop_key_schedule), name(drop_key_shape),
                     drop_key_window ? fmt::format(" {}", drop_key_window) : "", name(drop_key_sharing), ratio,
                     empty.probability, error, name(empty_rows));
}

std::string DropOptions::describe_path() const {
  if (drop_path == 0) return "none";
  const bool uniform = drop_path_schedule == nn::Schedule::constant;
  return fmt::format("{:g}, {}, {}", drop_path, nn::drop_path_schedule_names()[uniform ? 0 : 1],
                     nn::name(drop_path_form));
}

}  // namespace plumb::lab
