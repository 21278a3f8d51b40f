// The values of --shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plumb::lab {

// A part of the trials of a study: the trials whose number, counted from 0, is `index` modulo `count`.
struct Shard {
  std::int64_t index = 0, count = 1;
  // Whether the trial of this number belongs to the shard.
  bool has(std::size_t number) const { return static_cast<std::int64_t>(number) % count == index; }
};
// The shard for a value of --shard. All trials belong to the shard of an empty text. Throws UsageError if the text does
// not have the form I/N with I in 1..N.
Shard shard_named(const std::string& text);

}  // namespace plumb::lab
