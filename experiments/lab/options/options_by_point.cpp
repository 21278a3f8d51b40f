#include "experiments/lab/options/options_by_point.h"

#include <algorithm>
#include <cmath>

namespace plumb::lab {

std::string option_of_axis(std::string axis) {
  std::ranges::replace(axis, '_', '-');
  return "--" + axis;
}

template <class Options>
Options OptionsByPoint::at(const Options& of_call, const Point& point) const {
  Options copy = of_call;
  for (const auto& [axis, option] : bound_)
    if (const AxisValue* value = point.find(axis)) option->set_in_copy(of_call, copy, *value);
  return copy;
}

bool OptionsByPoint::binds(const std::string& axis) const {
  return axis == search_steps ||
         std::ranges::find(bound_, axis, &std::pair<std::string, const CliOption*>::first) != bound_.end();
}

StudyOptions OptionsByPoint::study(const Point& point) const {
  StudyOptions o = at(study_, point);
  if (o.warmup_share && point.find("steps")) o.warmup = std::llround(*o.warmup_share * static_cast<double>(o.steps));
  if (point.find(search_steps)) {
    const auto steps = point.get<std::int64_t>(search_steps);
    if (o.warmup && o.steps > 0)
      o.warmup =
          std::llround(static_cast<double>(*o.warmup) * static_cast<double>(steps) / static_cast<double>(o.steps));
    o.steps = steps;
  }
  return o;
}

NetworkOptions OptionsByPoint::network(const Point& point) const { return at(network_, point); }
OptimizationOptions OptionsByPoint::optimization(const Point& point) const { return at(optimization_, point); }

}  // namespace plumb::lab
