#include "core/json_text.h"

#include <algorithm>

#include "core/error.h"

namespace plumb {

std::string_view shallow_json(std::string_view text, std::string_view source) {
  const auto after = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = text.find(mark, from);
    return found == text.npos ? text.size() : found + mark.size();
  };
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i++];
    if (c == '"') {
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      ++i;
    } else if (c == '/' && text.substr(i, 1) == "/") {
      i = after("\n", i);
    } else if (c == '/' && text.substr(i, 1) == "*") {
      i = after("*/", i + 1);
    } else if (c == '[' || c == '{') {
      check(++depth <= deepest_json, "{}: expected JSON with lists and objects at most {} deep, got more at byte {}",
            source, deepest_json, i - 1);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text;
}

}  // namespace plumb
