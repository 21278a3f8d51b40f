// One set of names for Catch2 2 and 3, and a macro that skips tests in both versions.
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

#include "tests/support/paths.h"

// Ends the test as skipped, for example PLUMB_SKIP("no data in " + dir). CTest's SKIP_REGULAR_EXPRESSION matches the
// line that this macro prints.
#define PLUMB_SKIP(why)                             \
  do {                                              \
    std::cout << "SKIPPED: " << (why) << std::endl; \
    SUCCEED("skipped");                             \
    return;                                         \
  } while (false)

namespace plumb::test {

// Returns the message of the error that `f` throws. Fails the test if `f` throws nothing.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  FAIL("expected an error, got none");
  return {};
}

inline auto contains(const std::string& text) { return PLUMB_CATCH_CONTAINS(text); }

}  // namespace plumb::test
