// The options of one trial: the options of the call, with the values of the trial's point for options that are axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/cli/option.h"
#include "experiments/lab/options/network_options.h"
#include "experiments/lab/options/optimizer_options.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// The name of the option that an axis sets if the option exists: "drop_key" gives "--drop-key".
std::string option_of_axis(std::string axis);

// Computes the options of a trial from its point.
class OptionsByPoint {
 public:
  // Takes references to the options of the call, which must outlive this object. They may change until they are read
  // for a trial.
  OptionsByPoint(const StudyOptions& study, const NetworkOptions& network, const OptimizationOptions& optimization)
      : study_(study), network_(network), optimization_(optimization) {}
  // Lets the axis set the variable of `option` in the copies that the functions below return. `option` must outlive
  // this object.
  void bind(const std::string& axis, const CliOption& option) { bound_.emplace_back(axis, &option); }
  // Whether bind() was called for the axis.
  bool binds(const std::string& axis) const;

  // The options of the trial at `point`. Throw UsageError if an option does not accept the value of its axis. If steps
  // is an axis and the user does not give --warmup, the default warm-up keeps its share of the trial's steps.
  StudyOptions study(const Point& point) const;
  NetworkOptions network(const Point& point) const;
  OptimizationOptions optimization(const Point& point) const;

 private:
  template <class Options>
  Options at(const Options& of_call, const Point& point) const;

  const StudyOptions& study_;
  const NetworkOptions& network_;
  const OptimizationOptions& optimization_;
  std::vector<std::pair<std::string, const CliOption*>> bound_;
};

}  // namespace plumb::lab
