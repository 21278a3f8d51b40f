// The names of the built-in methods.
#pragma once

#include <string>
#include <vector>

#include "nn/gates/method.h"

namespace plumb::test {

// The names are read before a test registers further methods.
inline const std::vector<std::string> built_in_gates = nn::method_names();

}  // namespace plumb::test
