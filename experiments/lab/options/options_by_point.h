// The options of one trial. An option that is an axis has the value of the trial's point; every other option has the
// value of the call.
#pragma once

#include <functional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// The name of the option that belongs to an axis: "--drop-key" for the axis "drop_key". The axis sets the option if the
// option exists.
std::string option_of_axis(std::string axis);

// Computes the options of a trial from the point of the trial. The options belong to groups. A group is a copyable
// struct with the function declare(Cli&), which declares the members of the struct as options.
class OptionsByPoint {
 public:
  OptionsByPoint() = default;
  OptionsByPoint(const OptionsByPoint&) = delete;  // the groups refer to this object
  OptionsByPoint& operator=(const OptionsByPoint&) = delete;
  // Adds a group. Stores a reference to the group of the call, which must outlive this object. Its options may change
  // until they are read for a trial. A type of groups may be added once.
  template <class Group>
  void add(const Group& of_call) {
    groups_.push_back({typeid(Group), &of_call, [this](const Point& point) { (void)at<Group>(point); }});
  }
  // Makes the axis set the option of this name.
  void bind(const std::string& axis, const std::string& option) { bound_.emplace_back(axis, option); }
  // Whether an entry of this name in a point needs no body that reads it: bind() was called for it, or it marks a trial
  // of a search or a neighbour.
  bool binds(const std::string& axis) const;

  // The group of the trial at `point`, or its defaults if no group of this type was added. Throws UsageError if an
  // option does not accept the value of its axis.
  template <class Group>
  Group at(const Point& point) const {
    const void* const of_call = find(typeid(Group));
    Group copy = of_call ? *static_cast<const Group*>(of_call) : Group();
    if (!of_call || bound_.empty()) return copy;
    Cli cli("", "");
    copy.declare(cli);
    set_axes(cli, point);
    return copy;
  }
  // Throws UsageError if an option of any group does not accept the value of its axis.
  void check(const Point& point) const;
  // The options of StudyOptions, as at(). If steps is an axis and the user does not give --warmup, the warm-up is the
  // same share of the steps in all trials. If the point has `search_steps`, the trial has this number of steps.
  StudyOptions study(const Point& point) const;

 private:
  struct AddedGroup {
    std::type_index type;
    const void* of_call;
    std::function<void(const Point&)> check;
  };
  const void* find(std::type_index group) const;
  void set_axes(Cli& cli, const Point& point) const;

  std::vector<AddedGroup> groups_;
  std::vector<std::pair<std::string, std::string>> bound_;  // axis and option
};

}  // namespace plumb::lab
