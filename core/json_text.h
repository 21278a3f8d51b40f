// A limit for JSON texts from outside: every reader of such texts passes them through shallow_json().
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumb {

// The largest number of lists and objects of a JSON text that may lie inside each other. Plumb's own texts have fewer
// than 10. Parsers, and functions that print or copy a value, call themselves for each level.
inline constexpr int deepest_json = 64;

// Returns `text`. Throws Error if lists and objects of the text are nested more than `deepest_json` deep. The message
// begins with `source`, such as the path of the file. Brackets in strings and in comments (// and /* */) do not count;
// other errors of the text are left to the parser.
std::string_view shallow_json(std::string_view text, std::string_view source);

// Returns a name that occurs twice in one object of the text, also in another spelling ("\u0061" for "a"), of which a
// parser would keep one value. Returns no value if all names are different, or if the text is no JSON. A callback of
// the parser could check this as well, but nlohmann-json 3.11 then takes time with the square of the number of objects.
std::optional<std::string> doubled_json_name(std::string_view text);

}  // namespace plumb
