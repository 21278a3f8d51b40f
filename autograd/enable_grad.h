// Recording inside a NoGrad, for functions that differentiate.
#pragma once

#include "core/scoped_value.h"

namespace plumb {

// While an EnableGrad lives, ops on this thread are recorded, even inside a NoGrad.
class EnableGrad {
 public:
  [[nodiscard("an EnableGrad has an effect only while it lives; name it: EnableGrad guard;")]] EnableGrad();

 private:
  ScopedValue<bool> value_;
};

}  // namespace plumb
