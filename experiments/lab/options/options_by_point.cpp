#include "experiments/lab/options/options_by_point.h"

#include <algorithm>
#include <cmath>

namespace plumb::lab {

std::string option_of_axis(std::string axis) {
  std::ranges::replace(axis, '_', '-');
  return "--" + axis;
}

const void* OptionsByPoint::find(std::type_index group) const {
  const auto found = std::ranges::find(groups_, group, &AddedGroup::type);
  return found == groups_.end() ? nullptr : found->of_call;
}

void OptionsByPoint::check(const Point& point) const {
  for (const AddedGroup& group : groups_) group.check(point);
}

void OptionsByPoint::set_axes(Cli& cli, const Point& point) const {
  for (const auto& [axis, name] : bound_)
    if (const AxisValue* value = point.find(axis)) cli.set(name, *value);
}

bool OptionsByPoint::binds(const std::string& axis) const {
  return axis == search_steps || axis == neighbour_steps ||
         std::ranges::find(bound_, axis, &std::pair<std::string, std::string>::first) != bound_.end();
}

StudyOptions OptionsByPoint::study(const Point& point) const {
  StudyOptions o = at<StudyOptions>(point);
  if (o.warmup_share && point.find("steps")) o.warmup = std::llround(*o.warmup_share * static_cast<double>(o.steps));
  if (point.find(search_steps)) {
    o.steps = point.get<std::int64_t>(search_steps);
    if (o.warmup) o.warmup = std::min(*o.warmup, o.steps);
  }
  return o;
}

}  // namespace plumb::lab
