#include "nn/layers/drop_schedule.h"

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

}  // namespace plumb::nn
