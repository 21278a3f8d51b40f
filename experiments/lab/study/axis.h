// The axes of a study.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "experiments/lab/cli/option.h"
#include "experiments/lab/study/axis_data.h"

namespace plumb::lab {

// A type that the values of an axis may have. The values of an enum are stored as their names.
template <class T>
concept AxisType = std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::string> || NamedEnum<T>;
// The type in which values of type T are stored.
template <AxisType T>
using StoredAxisValue =
    std::conditional_t<NamedEnum<T>, std::string, std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>>;
// A type whose values can be compared with the values of an axis of type T.
template <class V, class T>
concept ComparableOnAxis = (std::is_same_v<T, std::string> && std::is_convertible_v<V, std::string>) ||
                           (std::is_same_v<T, double> && std::is_arithmetic_v<V>) ||
                           (std::is_integral_v<T> && std::is_integral_v<V> && !std::is_same_v<V, bool>) ||
                           (NamedEnum<T> && std::is_same_v<V, T>);

class Study;

// A handle to an axis of a study. Trials use the handle to read their value on the axis: trial[axis]. Conditions on
// trials, for claims and charts, compare the handle with a value: axis == 1e-6 && other == "pre".
template <class T>
class Axis {
 public:
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
  Axis one_of_methods() { return option().one_of_methods(), *this; }
  // Makes this axis vary slower than all other axes in the order of trials. By default the first axis varies slowest.
  // The order of columns does not change.
  Axis slowest() { return data_->slowest = true, *this; }

  // The values in this call. Presets and the command line change the values until the study runs.
  std::vector<T> values() const {
    std::vector<T> values;
    for (const auto& value : std::get<std::vector<StoredAxisValue<T>>>(data_->values)) values.push_back(typed(value));
    return values;
  }
  // The value of a point on this axis. Throws Error if the point does not have the axis.
  T value_in(const Point& point) const { return typed(point.get<StoredAxisValue<T>>(name())); }
  // Whether a point has the first value, or if the axis has the value `usual`, this value. If the axis has no effect at
  // some points, Study::only() can ask for this value.
  bool has_usual(const Point& point, const std::optional<T>& usual = {}) const {
    const std::vector<T> all = values();
    const bool has = usual && std::ranges::find(all, *usual) != all.end();
    return value_in(point) == (has ? *usual : all.front());
  }
  // The condition that a trial has this value on the axis. Throws Error if the option of the axis does not accept the
  // value.
  template <class V>
  requires ComparableOnAxis<V, T> Point operator==(const V& value) const {
    return {{name(), accepted(to_stored(value))}};
  }

 private:
  friend Study;
  explicit Axis(AxisData& data) : data_(&data) {}
  static T typed(const StoredAxisValue<T>& stored) {
    if constexpr (NamedEnum<T>)
      return enum_named<T>("axis", stored);
    else
      return static_cast<T>(stored);
  }
  template <class V>
  static StoredAxisValue<T> to_stored(const V& value) {
    if constexpr (NamedEnum<T>)
      return enum_name(value);
    else
      return static_cast<StoredAxisValue<T>>(value);
  }
  AxisValue accepted(const AxisValue& value) const {
    try {
      return data_->declared ? data_->declared->accepted(value) : value;
    } catch (const UsageError& e) {  // the program is wrong, not its user
      throw Error(fmt::format("[axis] {}", e.what()));
    }
  }
  CliOption& option() const {
    internal_check(data_->declared, "bounds of the searched axis {}, which has no option", data_->name);
    return *data_->declared;
  }
  AxisData* data_;
};

}  // namespace plumb::lab
