// The axes of a study.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/lab/cli/option.h"

namespace plumb::lab {

// The data of an axis. The values come from an option of the command line, or the study finds the values while it runs
// (Study::searched).
struct AxisData {
  std::string name, option;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
  CliOption* declared = nullptr;  // null if the axis is searched
  bool slowest = false;

  // The values; null if the values have another type.
  template <class T>
  const std::vector<T>* values_of() const {
    return std::get_if<std::vector<T>>(&values);
  }
};

// A type that the values of an axis may have.
template <class T>
concept AxisType = std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::string>;
// The type in which values of type T are stored.
template <class T>
using StoredAxisValue = std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>;

// A handle to an axis of a study. Trials use the handle to read their value on the axis: trial[axis].
template <class T>
class Axis {
 public:
  explicit Axis(AxisData& data) : data_(&data) {}
  const std::string& name() const { return data_->name; }  // name of the axis in points and columns, such as "depth"

  // Sets the name of the axis. Without this call the name follows from the option: "depth" for "--depths".
  Axis named(const std::string& name) { return data_->name = name, *this; }
  // Functions that set bounds and names of the values, as for an option (cli/option.h).
  Axis at_least(double low) { return option().at_least(low), *this; }
  Axis above(double low) { return option().above(low), *this; }
  Axis at_most(double high) { return option().at_most(high), *this; }
  Axis below(double high) { return option().below(high), *this; }
  Axis one_of(const std::string& noun, std::vector<std::string> names) {
    return option().one_of(noun, std::move(names)), *this;
  }
  Axis one_of_methods(const std::string& noun) { return option().one_of_methods(noun), *this; }
  // The current values, and a function with which presets set the values.
  std::vector<T> values() const { return {stored().begin(), stored().end()}; }
  void set(const std::vector<T>& values) const { stored().assign(values.begin(), values.end()); }
  // Makes this axis vary slower than all other axes in the order of trials. By default the first axis varies slowest.
  // The order of columns does not change.
  Axis slowest() { return data_->slowest = true, *this; }

 private:
  auto& stored() const { return std::get<std::vector<StoredAxisValue<T>>>(data_->values); }
  CliOption& option() const {
    internal_check(data_->declared, "bounds of the searched axis {}, which has no option", data_->name);
    return *data_->declared;
  }
  AxisData* data_;
};

}  // namespace plumb::lab
