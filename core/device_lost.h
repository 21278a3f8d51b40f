// The error of a device that has failed for good.
#pragma once

#include <stdexcept>

namespace plumb {

// A fault of a device after which this process cannot use the device again. A study ends at such an error, because all
// its later trials would fail; finished trials are kept. This is no Error: code that goes on after an Error must not go
// on after this.
class DeviceLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace plumb
