#include "core/json_text.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace plumb;

namespace {

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += i % 2 ? "{\"a\":" : "[";
  text += "1";
  for (int i = depth; i-- > 0;) text += i % 2 ? "}" : "]";
  return text;
}

}  // namespace

TEST_CASE("JSON of a limited depth passes, and deeper JSON is refused with its source") {
  for (const std::string& text : {nested(0), nested(1), nested(deepest_json), std::string("{\"a\": [1, 2"),
                                  std::string(), std::string("]]]]"), std::string("\"")})
    CHECK(shallow_json(text, "f.json") == text);
  for (const int depth : {deepest_json + 1, 200'000})
    CHECK_THROWS_WITH(shallow_json(nested(depth), "f.json"),
                      Catch::StartsWith("f.json: expected JSON with lists and objects at most 64 deep, got more at "));
}

TEST_CASE("brackets side by side and in strings and comments do not add to the depth of JSON") {
  std::string side_by_side, in_string, in_comment;
  for (int i = 0; i < 1000; ++i) side_by_side += "[],{},", in_string += "[{", in_comment += "[";
  for (const std::string& text : {"[" + side_by_side + "1]", "\"" + in_string + "\"", "\"\\\"" + in_string + "\\\\\"",
                                  "// \"" + in_comment + "\n1", "/* \"" + in_comment + " */ 1", "/* " + in_comment})
    CHECK_NOTHROW(shallow_json(text, "f"));
}

TEST_CASE("no string and no comment hides nested JSON") {
  const std::string deep(100, '[');
  for (const std::string& text :
       {"\"a\"" + deep, "\"\\\\\"" + deep, "/* \" */" + deep, "// \"\n" + deep, "/*/ */" + deep, "\"/*\"" + deep,
        "\"//\"" + deep, "'" + deep, "//\r" + deep, std::string("//\0", 3) + deep})
    CHECK_THROWS_AS(shallow_json(text, "f"), Error);
}

TEST_CASE("a name that occurs twice in an object of JSON is found in any spelling") {
  CHECK(doubled_json_name(R"({"a": 1, "b": 2, "a": 3})") == "a");
  CHECK(doubled_json_name(R"([1, {"c": {"a": 1, "\u0061": 2}}])") == "a");
  CHECK(doubled_json_name("// a comment\n{\"\": 1, \"\": 2}") == "");
  for (const char* text :
       {R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": "a"})", "[]", "1", R"(["a", "a"])", R"({"a": 1, "b)"})
    CHECK(doubled_json_name(text) == std::nullopt);
}
