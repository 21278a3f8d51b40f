// A number with its standard error.
#pragma once

namespace plumb {

// A number, with its standard error if it is an estimate from random draws.
struct Estimate {
  double value = 0;
  double standard_error = 0;  // 0 if exact
  bool exact = true;          // whether the value is exact, not an estimate
};

}  // namespace plumb
