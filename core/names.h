// Names as messages list them; enums by name, as users type them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"

namespace plumb {

// "a, b or c"
inline std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

// "a, b, c": the first ten of a list that may be long, and how many more there are.
inline std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

// The place of `wanted` in `names`, which is an enum's value if they stand in its order. Throws "[op] expected a, b or
// c, got ..." for another.
inline std::size_t index_of_name(const char* op, const std::vector<std::string>& names, const std::string& wanted) {
  const auto found = std::ranges::find(names, wanted);
  check(found != names.end(), "[{}] expected {}, got \"{}\"", op, alternatives(names), wanted);
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace plumb
