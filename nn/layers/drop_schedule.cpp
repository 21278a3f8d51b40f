#include "nn/layers/drop_schedule.h"

#include "core/names.h"

namespace plumb::nn {
namespace {

// Returns the names in the order of the enum, followed by the names of `constant` and `increasing` in stochastic depth.
const std::vector<std::string>& all_names() {
  static const std::vector<std::string> names{"constant", "increasing", "decreasing", "dec_open", "uniform", "linear"};
  return names;
}

}  // namespace

double rate_at(Schedule schedule, double rate, std::int64_t layer, std::int64_t layers) {
  check(0 <= layer && layer < layers, "[schedule] expected a layer in 0..{}, got {}", layers - 1, layer);
  if (layers == 1) return rate;
  const auto l = static_cast<double>(layer), n = static_cast<double>(layers);
  switch (schedule) {
    case Schedule::increasing:
      return rate * l / (n - 1);
    case Schedule::decreasing:
      return rate * (1 - l / (n - 1));
    case Schedule::dec_open:
      return rate * (n - l) / n;
    case Schedule::constant:
      break;
  }
  return rate;
}

const char* name(Schedule schedule) { return all_names()[static_cast<std::size_t>(schedule)].c_str(); }

const std::vector<std::string>& drop_key_schedule_names() {
  static const std::vector<std::string> names{"constant", "decreasing", "increasing", "dec_open"};
  return names;
}

const std::vector<std::string>& drop_path_schedule_names() {
  static const std::vector<std::string> names{"uniform", "linear"};
  return names;
}

Schedule schedule_named(const std::string& wanted) {
  return static_cast<Schedule>(index_of_name("schedule", all_names(), wanted) % 4);
}

}  // namespace plumb::nn
