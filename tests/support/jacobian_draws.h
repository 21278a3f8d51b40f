// The mean squared singular value over random initializations of a network. Papers report this value for a method.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "autograd/jacobian.h"

namespace plumb::test {

struct JacobianDraws {
  std::vector<double> values;  // the measured values in ascending order
  double mean = 0, median = 0;
};

// Measures `draws` networks. `network(draw)` creates the network of one draw, counted from 0. Each network is measured
// at a different random input of this shape from N(0, 1), in the default dtype on the default device. The measurement
// is exact for up to 256 outputs.
inline JacobianDraws jacobian_draws(
    const std::function<std::function<Tensor(const Tensor&)>(std::uint64_t draw)>& network, const Shape& input,
    std::uint64_t draws = 10) {
  JacobianDraws result;
  for (std::uint64_t draw = 0; draw < draws; ++draw)
    result.values.push_back(
        mean_squared_singular_value(network(draw), random_normal(input, draw, "jacobian_draws.input"), {.seed = draw})
            .value);
  std::ranges::sort(result.values);
  for (double v : result.values) result.mean += v / static_cast<double>(draws);
  result.median = (result.values[(draws - 1) / 2] + result.values[draws / 2]) / 2;
  return result;
}

}  // namespace plumb::test
