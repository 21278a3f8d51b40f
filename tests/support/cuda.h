// Support for tests of the cuda backend.
#pragma once

#include <cstdlib>

#include "core/device.h"
#include "tests/support/catch.h"

// Skips the test if there is no CUDA device. If the environment variable REQUIRE_GPU is set, fails the test instead.
#define PLUMB_REQUIRE_CUDA()                                                \
  do {                                                                      \
    const std::string why = plumb::why_no_cuda();                           \
    INFO(why);                                                              \
    if (!why.empty()) REQUIRE_FALSE(std::getenv("REQUIRE_GPU") != nullptr); \
    if (!why.empty()) PLUMB_SKIP("no CUDA device: " + why);                 \
  } while (false)
