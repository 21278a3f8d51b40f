#include "nn/schedule.h"

#include "core/error.h"

namespace plumb::nn {

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

const char* name(Schedule schedule) {
  constexpr const char* names[] = {"constant", "increasing", "decreasing", "dec_open"};
  return names[static_cast<int>(schedule)];
}

const std::vector<std::string>& drop_key_schedule_names() {
  static const std::vector<std::string> names{"constant", "decreasing", "increasing", "dec_open"};
  return names;
}

const std::vector<std::string>& drop_path_schedule_names() {
  static const std::vector<std::string> names{"uniform", "linear"};
  return names;
}

Schedule schedule_named(const std::string& wanted) {
  if (wanted == "uniform") return Schedule::constant;
  if (wanted == "linear") return Schedule::increasing;
  for (Schedule s : {Schedule::constant, Schedule::increasing, Schedule::decreasing, Schedule::dec_open})
    if (wanted == name(s)) return s;
  fail(fmt::format("[schedule] expected constant, decreasing, increasing, dec_open, uniform or linear, got \"{}\"", wanted));
}

}  // namespace plumb::nn
