// Catch2 2 and 3 under one name, and skipping that both understand.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define PLUMB_CATCH_CONTAINS Catch::Matchers::ContainsSubstring
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#define PLUMB_CATCH_CONTAINS Catch::Matchers::Contains
#endif

#include <iostream>
#include <string>

// Ends the test as skipped (CTest's SKIP_REGULAR_EXPRESSION looks for this line): PLUMB_SKIP("no data in " + dir);
#define PLUMB_SKIP(why)                             \
  do {                                              \
    std::cout << "SKIPPED: " << (why) << std::endl; \
    SUCCEED("skipped");                             \
    return;                                         \
  } while (false)

namespace plumb::test {

// The message of the error that `f` throws; fails the test when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  FAIL("expected an error, none came");
  return {};
}

inline auto contains(const std::string& text) { return PLUMB_CATCH_CONTAINS(text); }

}  // namespace plumb::test
