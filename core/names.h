// Lists of names in messages, and enum values by name.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"

namespace plumb {

// Joins names for a message: "a, b or c".
inline std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

// Joins the first ten names for a message, followed by the number of the others: "a, b, c and 5 more".
inline std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

// Returns the index of `wanted` in `names`. If `names` is in the order of an enum's values, the index is the value of
// the enum. Throws Error "[op] expected a, b or c, got ..." if `wanted` is not in the list.
inline std::size_t index_of_name(const char* op, const std::vector<std::string>& names, const std::string& wanted) {
  const auto found = std::ranges::find(names, wanted);
  check(found != names.end(), "[{}] expected {}, got \"{}\"", op, alternatives(names), wanted);
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace plumb
