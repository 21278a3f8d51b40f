// Tests of errors that a program makes outside Study::run().
#include <algorithm>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb::test;

TEST_CASE("an uncaught error of a program ends with one line and an exit status") {
  const TemporaryFolder folder;
  const auto ends = [&](const std::string& words, int status, const std::string& text) {
    const Finished f = run(folder.path(), words);
    INFO(words << ": " << f.err);
    CHECK(f.status == status);
    CHECK_THAT(f.err, contains(text) && !contains("terminate called") && !contains("internal error"));
    if (!text.empty()) CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    if (!text.empty()) CHECK(f.err.starts_with("error: "));
    return f.out;
  };
  const std::string wrong = program("wrong_program") + " ";
  CHECK(ends(wrong + "axis", 1,
             "[study] expected an unused option for an axis (--seeds is for seeds), got a second --depths") ==
        "begun\n");
  ends(wrong + "gate", 1, "pre");
  ends("WRONG_AT_NAMESPACE_SCOPE=1 " + wrong, 1, "pre");
  ends(wrong + "option", 1, "[cli] expected a new option whose name begins with --, got --help, which exists");
  ends(wrong + "usage", 2, "error: not so");
  ends(wrong + "tensor", 1, "[2, 3]");
  ends(wrong + "standard", 1, "stod");
  ends(wrong + "thread", 1, "error: in a thread, of two lines");
  ends(wrong + "'own handler'", 7, "");
  CHECK(run(folder.path(), wrong + "other").status >= 128);  // an exception of unknown type aborts the program
}
