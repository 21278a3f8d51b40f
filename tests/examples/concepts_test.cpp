// The number of types that a branch or a gate of one's own names.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/paths.h"

namespace fs = std::filesystem;

namespace {

// The names of the types of nn in an example program, from the first line that contains `begin` to main() or, if
// `with_main` is true, to the end.
std::set<std::string> types_of(const fs::path& program, const std::string& begin, bool with_main) {
  std::ifstream in(program);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t first = text.find(begin), main = text.find("int main");
  REQUIRE(first < main);
  REQUIRE(main != std::string::npos);
  const std::string part = text.substr(first, with_main ? std::string::npos : main - first);
  static const std::regex type(R"(nn::([A-Z]\w*))");
  std::set<std::string> names;
  for (std::sregex_iterator i(part.begin(), part.end(), type), end; i != end; ++i) names.insert((*i)[1]);
  return names;
}

const fs::path examples = fs::path(plumb::test::source_dir()) / "examples";

}  // namespace

TEST_CASE("a branch of one's own names at most six types") {
  const std::set<std::string> types = types_of(examples / "own_blocks.cpp", "struct CrossAttention", false);
  CHECK(types.contains("Branch"));
  CHECK(types.size() <= 6);
}

TEST_CASE("a gate of one's own and its registration name at most five types") {
  int gates = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(examples)) {
    if (!entry.path().filename().string().ends_with("_gate.cpp")) continue;
    INFO(entry.path().filename());
    const std::set<std::string> types = types_of(entry.path(), "struct ", true);
    CHECK(types.contains("Gate"));
    CHECK(types.size() <= 5);
    ++gates;
  }
  CHECK(gates >= 5);
}
