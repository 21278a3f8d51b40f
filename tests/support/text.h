// Counts in texts.
#pragma once

#include <algorithm>
#include <string>

namespace plumb::test {

inline int lines_of(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// How often `part` occurs in `text`, without overlaps.
inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + part.size())) ++n;
  return n;
}

}  // namespace plumb::test
