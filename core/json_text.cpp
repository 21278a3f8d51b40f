#include "core/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"

namespace plumb {
namespace {

using Json = nlohmann::json;

// Sees the names of each object. A member function that returns false ends the parsing.
class Names : public nlohmann::json_sax<Json> {
 public:
  std::optional<std::string> doubled = {};

  bool start_object(std::size_t) override { return open_.emplace_back(), true; }
  bool key(std::string& name) override {
    if (!open_.back().insert(name).second) doubled = name;
    return !doubled;
  }
  bool end_object() override { return open_.pop_back(), true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace

std::string_view shallow_json(std::string_view text, std::string_view source) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i++];
    if (c == '"') {
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      ++i;
    } else if (c == '/' && text.substr(i, 1) == "/") {
      i = std::min(text.find_first_of(std::string_view("\n\r\0", 3), i), text.size());  // as the parser ends it
    } else if (c == '/' && text.substr(i, 1) == "*") {
      const std::size_t end = text.find("*/", i + 1);
      i = end == text.npos ? text.size() : end + 2;
    } else if (c == '[' || c == '{') {
      check(++depth <= deepest_json, "{}: expected JSON with lists and objects at most {} deep, got more at byte {}",
            source, deepest_json, i - 1);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text;
}

std::optional<std::string> doubled_json_name(std::string_view text) {
  Names names;
  Json::sax_parse(text, &names, Json::input_format_t::json, true, true);
  return names.doubled;
}

}  // namespace plumb
