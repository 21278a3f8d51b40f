// An observer of the steps of a training loop.
#pragma once

#include <cstdint>
#include <functional>

#include "autograd/backward.h"

namespace plumb::lab {

// Functions that are called around the update of a step, either of which may be missing. before() gets the number of
// the step. after() gets the gradients of the step, after the update; it must remove the hooks that before() set,
// because the step may be repeated.
struct Observer {
  std::function<void(std::int64_t step)> before = {};
  std::function<void(const Gradients& gradients)> after = {};
};

}  // namespace plumb::lab
