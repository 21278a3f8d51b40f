// How a rate of dropping varies over depth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::nn {

// Layer l of N, counted from 0. A network of one layer takes the base rate.
//   constant    r                 (also "uniform": CaiT, DeiT-III)
//   increasing  r l / (N - 1)     (also "linear": DeiT's stochastic depth)
//   decreasing  r (1 - l / (N - 1))   best for DropKey by its authors
//   dec_open    r (N - l) / N
enum class Schedule { constant, increasing, decreasing, dec_open };

double rate_at(Schedule schedule, double rate, std::int64_t layer, std::int64_t layers);

const char* name(Schedule schedule);
const std::vector<std::string>& drop_key_schedule_names();   // constant, decreasing, increasing, dec_open
const std::vector<std::string>& drop_path_schedule_names();  // uniform, linear
Schedule schedule_named(const std::string& name);            // any of the above; throws for another

}  // namespace plumb::nn
