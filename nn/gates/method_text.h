// The text form of a residual method.
#pragma once

#include <string>

#include "nn/gates/method.h"

namespace plumb::nn {

// The parts of a method's text form NAME or NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. VALUE is a number or by_depth.
struct MethodText {
  std::string name;
  ConstantValues values = {};  // the constants that the text names
};
// Parses the text form of a method. Throws Error if the text does not have this form. The function does not check that
// the method exists.
MethodText method_text(const std::string& text);

}  // namespace plumb::nn
