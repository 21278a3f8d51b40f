#include "core/drop_key.h"

#include "tests/support/catch.h"

using namespace plumb;

namespace {

enum class Short { one, two };
constexpr auto names_of(Short) { return std::array{"one"}; }

}  // namespace

TEST_CASE("An enum that declares names is found by name, and an unknown name is answered with the known names") {
  CHECK(enum_names<EmptyRow>() == std::vector<std::string>{"keep_all", "zero", "paper"});
  for (const DropShape shape : enum_values<DropShape>())
    CHECK(enum_named<DropShape>("shape", enum_name(shape)) == shape);
  CHECK(enum_named<DropSharing>("sharing", "column") == DropSharing::column);
  CHECK(test::error_of([] { enum_named<DropShape>("drop_shape", "disc"); }) ==
        "[drop_shape] expected plain, block or cross, got \"disc\"");
  CHECK(test::error_of([] { enum_named<DropShape>("drop_shape", "plan"); }) ==
        "[drop_shape] expected plain, block or cross, got \"plan\"; did you mean \"plain\"?");
  CHECK(test::error_of([] { enum_name(Short::two); }) ==
        "[enum] expected names_of() to name each value, got 1 names and value 1");
}
