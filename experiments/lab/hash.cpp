#include "experiments/lab/hash.h"

#include <fmt/format.h>

#include "core/random.h"

namespace plumb::lab {

std::string Hash::text() const { return fmt::format("{:016x}", random_key(state_, "hash")); }

std::string hash_of(std::string_view text) {
  Hash hash;
  hash.add(text);
  return hash.text();
}

}  // namespace plumb::lab
