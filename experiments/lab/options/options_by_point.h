// The options of one trial: those of the call, with the values that its point has on axes that stand for options of the
// library.
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

// "drop_key" -> "--drop-key": the option for which an axis of this name stands, if the library has one.
std::string option_of_axis(std::string axis);

class OptionsByPoint {
 public:
  // The options of the call, which outlive this; they may change until a trial asks.
  OptionsByPoint(const StudyOptions& study, const NetworkOptions& network, const OptimizationOptions& optimization)
      : study_(study), network_(network), optimization_(optimization) {}
  // Lets an axis set a variable of these options in the copies below. `option` outlives this.
  void bind(const std::string& axis, const CliOption& option) { bound_.emplace_back(axis, &option); }

  // Throw UsageError for a value that the option would refuse.
  StudyOptions study(
      const Point& point) const;  // if steps are an axis, a default warm-up keeps its share of the trial's steps
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
