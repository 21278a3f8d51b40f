// A message as one line, for places that have room for one.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

// The text without line ends, and the indentation after them.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text)
    if (const bool space = c == '\n' || c == ' '; !space || (!line.empty() && line.back() != ' '))
      line += space ? ' ' : c;
  return line;
}

}  // namespace plumb
