// Messages on one line.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

// Returns the text as one line: each line end, and the indentation after it, becomes one space.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text)
    if (const bool space = c == '\n' || c == ' '; !space || (!line.empty() && line.back() != ' '))
      line += space ? ' ' : c;
  return line;
}

}  // namespace plumb
