// Schedules of a drop rate over the layers of a network.
#pragma once

#include <cstdint>

#include "core/enum_names.h"

namespace plumb::nn {

// Drop rate as a function of the layer. r is the base rate, N the number of layers, and l the index of a layer, from 0.
// If N is 1, the rate is r. The rates of layer l:
//   constant    r                     CaiT, DeiT-III
//   decreasing  r (1 - l / (N - 1))   the best for DropKey, according to its authors
//   increasing  r l / (N - 1)         DeiT's stochastic depth
//   dec_open    r (N - l) / N
enum class Schedule { constant, decreasing, increasing, dec_open };
constexpr auto names_of(Schedule) { return std::array{"constant", "decreasing", "increasing", "dec_open"}; }

// Returns the rate of layer `layer` in a network of `layers` layers with the base rate `rate`. Throws Error for a layer
// outside 0 .. layers - 1.
double rate_at(Schedule schedule, double rate, std::int64_t layer, std::int64_t layers);

}  // namespace plumb::nn
