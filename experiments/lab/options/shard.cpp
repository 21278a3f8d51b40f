#include "experiments/lab/options/shard.h"

#include <charconv>

#include "experiments/lab/console.h"

namespace plumb::lab {

Shard shard_named(const std::string& text) {
  if (text.empty()) return {};
  Shard part;
  const char *at = text.data(), *end = at + text.size();
  const auto first = std::from_chars(at, end, part.index);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, part.count) : first;
  usage_check(slash && second.ec == std::errc() && second.ptr == end && 1 <= part.index && part.index <= part.count,
              "--shard expects I/N with I in 1..N, such as 2/5, got '{}'", text);
  --part.index;
  return part;
}

}  // namespace plumb::lab
