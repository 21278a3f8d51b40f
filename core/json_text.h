// A limit for JSON texts from outside: every reader of such texts passes them through shallow_json().
#pragma once

#include <string_view>

namespace plumb {

// The largest number of lists and objects of a JSON text that may lie inside each other. Plumb's own texts have fewer
// than 10. Parsers, and functions that print or copy a value, call themselves for each level.
inline constexpr int deepest_json = 64;

// Returns `text`. Throws Error if lists and objects of the text are nested more than `deepest_json` deep. The message
// begins with `source`, such as the path of the file. Brackets in strings and in comments (// and /* */) do not count;
// other errors of the text are left to the parser.
std::string_view shallow_json(std::string_view text, std::string_view source);

}  // namespace plumb
