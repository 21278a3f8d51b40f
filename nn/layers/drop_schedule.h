// Schedules of a drop rate over the layers of a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::nn {

// Drop rate as a function of the layer. r is the base rate, N the number of layers, and l the index of a layer, from 0.
// If N is 1, the rate is r. The rates of layer l:
//   constant    r                     also "uniform": CaiT, DeiT-III
//   increasing  r l / (N - 1)         also "linear": DeiT's stochastic depth
//   decreasing  r (1 - l / (N - 1))   the best for DropKey, according to its authors
//   dec_open    r (N - l) / N
enum class Schedule { constant, increasing, decreasing, dec_open };

// Returns the rate of layer `layer` in a network of `layers` layers with the base rate `rate`. Throws Error for a layer
// outside 0 .. layers - 1.
double rate_at(Schedule schedule, double rate, std::int64_t layer, std::int64_t layers);

// Returns the name of a schedule. For stochastic depth, "uniform" is another name of `constant`, and "linear" another
// name of `increasing`.
const char* name(Schedule schedule);
// Returns the names that DropKey accepts: constant, decreasing, increasing, dec_open.
const std::vector<std::string>& drop_key_schedule_names();
// Returns the names that stochastic depth accepts: uniform, linear.
const std::vector<std::string>& drop_path_schedule_names();
// Returns the schedule with one of the names above. Throws Error for another name.
Schedule schedule_named(const std::string& name);

}  // namespace plumb::nn
