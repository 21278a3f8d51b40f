// The numbers that are not finite.
#pragma once

#include <limits>

namespace plumb::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace plumb::test
