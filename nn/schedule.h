// How a drop rate varies over the layers of a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::nn {

// The schedules give layer l of N, counted from 0, the rates below, where r is the base rate. A network with one layer
// uses r.
//   constant    r                     also "uniform": CaiT, DeiT-III
//   increasing  r l / (N - 1)         also "linear": DeiT's stochastic depth
//   decreasing  r (1 - l / (N - 1))   the best for DropKey, according to its authors
//   dec_open    r (N - l) / N
enum class Schedule { constant, increasing, decreasing, dec_open };

// The rate of layer `layer` of `layers`, from the base rate `rate`. Throws Error for a layer outside 0 .. layers - 1.
double rate_at(Schedule schedule, double rate, std::int64_t layer, std::int64_t layers);

// The name of a schedule; for stochastic depth, "uniform" and "linear" are other names of constant and increasing.
const char* name(Schedule schedule);
// The names that DropKey accepts: constant, decreasing, increasing, dec_open.
const std::vector<std::string>& drop_key_schedule_names();
// The names that stochastic depth accepts: uniform, linear.
const std::vector<std::string>& drop_path_schedule_names();
// The schedule of one of these names. Throws Error for another name.
Schedule schedule_named(const std::string& name);

}  // namespace plumb::nn
