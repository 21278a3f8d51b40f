// Messages on one line, without control characters.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

// Returns the text with each control character except the tab as an escape such as \x1b. A text of a file from
// elsewhere then cannot send commands to a terminal, and cannot begin a line.
inline std::string printable(std::string_view text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    // UTF-8 has the control characters from 0x80 to 0x9f in two bytes.
    const bool high = byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (high) byte = static_cast<unsigned char>(text[++i]);
    if (high || (byte < 0x20 && byte != '\t') || byte == 0x7f)
      shown += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    else
      shown += text[i];
  }
  return shown;
}

// Returns the text as one line: each line end, and the indentation after it, becomes one space. Other control
// characters become escapes (printable()).
inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text)
    if (const bool space = c == '\n' || c == ' '; !space || (!line.empty() && line.back() != ' '))
      line += space ? ' ' : c;
  return printable(line);
}

}  // namespace plumb
