// The command-line options for DropKey, attention dropout, DropHead and stochastic depth.
#pragma once

#include <string>

#include "experiments/vision/data/lab.h"
#include "nn/blocks/stack.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The values of --drop-path-schedule: the names that stochastic depth has for nn::Schedule::constant (CaiT) and
// nn::Schedule::increasing (DeiT).
enum class DropPathSchedule { uniform, linear };
constexpr auto names_of(DropPathSchedule) { return std::array{"uniform", "linear"}; }

// The values of the drop options.
struct DropOptions {
  double drop_key = 0, attn_drop = 0, drop_head = 0, drop_path = 0;
  nn::Schedule drop_key_schedule = nn::Schedule::constant;
  DropShape drop_key_shape = DropShape::plain;
  DropSharing drop_key_sharing = DropSharing::per_entry;
  nn::DropMatch drop_key_match = nn::DropMatch::rate;
  EmptyRow empty_rows = EmptyRow::keep_all;
  std::int64_t drop_key_window = 0;  // in patches; 0: the default of the shape
  DropPathSchedule drop_path_schedule = DropPathSchedule::uniform;
  nn::DropPathForm drop_path_form = nn::DropPathForm::rescaled;

  // Declares the options in the section Dropping.
  void declare(Cli& cli);

  nn::DropKey key() const;           // the settings of DropKey
  nn::DropPathOptions path() const;  // the settings of stochastic depth
  // The settings of DropHead. Over the `steps` training steps, the rate falls to 0 at mid-training and rises again.
  nn::DropHeadOptions head(std::int64_t steps) const { return {.rate = drop_head, .steps = steps}; }

  // A text for reports: the settings of DropKey, the expected share of dropped keys, and the probability that a query
  // loses every key. The text is "none" if no key is dropped. The share and the probability are those of a block at the
  // base rate with `keys` keys, the last of which lie on the grid. Throws UsageError if the shape does not fit on the
  // grid.
  std::string describe_key(std::int64_t keys, KeyGrid grid) const;
  // A text for reports: the settings of stochastic depth, or "none".
  std::string describe_path() const;
};

}  // namespace plumb::vision
