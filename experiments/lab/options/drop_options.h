// What is dropped while a network trains: the options of every experiment that has them, and what they come to.
#pragma once

#include <string>

#include "nn/stack.h"

namespace plumb::lab {

class Cli;

struct DropOptions {
  double drop_key = 0, attn_drop = 0, drop_head = 0, drop_path = 0;
  nn::Schedule drop_key_schedule = nn::Schedule::constant;
  DropShape drop_key_shape = DropShape::plain;
  DropSharing drop_key_sharing = DropSharing::per_entry;
  nn::DropMatch drop_key_match = nn::DropMatch::rate;
  EmptyRow empty_rows = EmptyRow::keep_all;
  std::int64_t drop_key_window = 0;                          // 0: the shape's own
  nn::Schedule drop_path_schedule = nn::Schedule::constant;  // uniform, or increasing: linear
  nn::DropPathForm drop_path_form = nn::DropPathForm::rescaled;

  // Declares them in the section Dropping.
  void declare(Cli& cli);

  nn::DropKey key() const;
  nn::DropPathOptions path() const;
  nn::DropHeadOptions head(std::int64_t steps) const {
    return {.rate = drop_head, .steps = steps};
  }  // V-shaped over the steps

  // For the report: DropKey with the expected share of keys dropped and the chance of a row without any key, both of a
  // block at the base rate with `keys` keys, the last of which lie on the grid; "none" where nothing is dropped. Throws
  // UsageError for a shape that does not fit.
  std::string describe_key(std::int64_t keys, KeyGrid grid) const;
  std::string describe_path() const;
};

}  // namespace plumb::lab
