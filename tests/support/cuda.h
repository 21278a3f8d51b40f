// For tests of the cuda backend.
#pragma once

#include <cstdlib>

#include "core/device.h"
#include "tests/support/catch.h"

// Ends the test as skipped where there is no device; fails it if the environment variable REQUIRE_GPU says that there
// must be one.
#define PLUMB_REQUIRE_CUDA()                                                \
  do {                                                                      \
    const std::string why = plumb::why_no_cuda();                           \
    INFO(why);                                                              \
    if (!why.empty()) REQUIRE_FALSE(std::getenv("REQUIRE_GPU") != nullptr); \
    if (!why.empty()) PLUMB_SKIP("no device for cuda: " + why);             \
  } while (false)
