// Lists of names in messages.
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

}  // namespace plumb
