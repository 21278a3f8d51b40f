// The options of one trial. An option that is an axis has the value of the trial's point; every other option has the
// value of the call.
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

// The entry of a point that gives a trial fewer steps than --steps says: the trial belongs to a search for a learning
// rate (study/own_rates.h).
inline constexpr const char* search_steps = "search_steps";

// The name of the option that belongs to an axis: "--drop-key" for the axis "drop_key". The axis sets the option if the
// option exists.
std::string option_of_axis(std::string axis);

// Computes the options of a trial from the point of the trial.
class OptionsByPoint {
 public:
  // Stores references to the options of the call, which must outlive this object. The options may change until they are
  // read for a trial.
  OptionsByPoint(const StudyOptions& study, const NetworkOptions& network, const OptimizationOptions& optimization)
      : study_(study), network_(network), optimization_(optimization) {}
  // Connects the axis to the variable of `option`: the axis sets this variable in the copies that the functions below
  // return. `option` must outlive this object.
  void bind(const std::string& axis, const CliOption& option) { bound_.emplace_back(axis, &option); }
  // Whether an entry of this name in a point sets an option: bind() was called for it, or it is `search_steps`.
  bool binds(const std::string& axis) const;

  // The options of the trial at `point`. These functions throw UsageError if an option does not accept the value of its
  // axis. If steps is an axis and the user does not give --warmup, the warm-up is the same share of the steps in all
  // trials. If the point has `search_steps`, the trial has this number of steps, and every warm-up in steps keeps its
  // share of the steps.
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
