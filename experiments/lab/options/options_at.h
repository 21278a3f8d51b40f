// The options of one trial: those of the call, with what its point has of them as axes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// "drop_key" -> "--drop-key": the option for which an axis of this name stands, if the library has one.
inline std::string option_of_axis(std::string axis) {
  std::ranges::replace(axis, '_', '-');
  return "--" + axis;
}

// Options say which they are by declare(), and so what an axis may set. Throws UsageError for a value that the option would refuse.
template <class Options>
Options options_at(Options options, const Point& point) {
  Cli cli("", "");
  options.declare(cli);
  for (const auto& [axis, value] : point.entries()) cli.set(option_of_axis(axis), to_string(value));
  return options;
}

// The same for the options of every study. If steps are an axis, a default warm-up keeps its share of the trial's steps.
inline StudyOptions trial_options_at(const StudyOptions& of_call, const Point& point) {
  StudyOptions o = options_at(of_call, point);
  if (o.warmup_share && point.find("steps")) o.warmup = std::llround(*o.warmup_share * static_cast<double>(o.steps));
  return o;
}

}  // namespace plumb::lab
