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

// An axis of a study: its values come from an option of the command line, or from what the study finds
// (Study::searched).
struct AxisData {
  std::string name, option;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
  CliOption* declared = nullptr;  // null: searched
  bool slowest = false;

  template <class T>
  const std::vector<T>* values_of() const {
    return std::get_if<std::vector<T>>(&values);
  }
};

template <class T>
concept AxisType = std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::string>;
template <class T>
using StoredAxisValue = std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>;

template <class T>
class Axis {
 public:
  explicit Axis(AxisData& data) : data_(&data) {}
  const std::string& name() const { return data_->name; }

  Axis named(const std::string& name) {
    return data_->name = name, *this;
  }  // "--depths" is "depth" unless this says otherwise
  Axis at_least(double low) { return option().at_least(low), *this; }
  Axis above(double low) { return option().above(low), *this; }
  Axis at_most(double high) { return option().at_most(high), *this; }
  Axis below(double high) { return option().below(high), *this; }
  Axis one_of(const std::string& noun, std::vector<std::string> names) {
    return option().one_of(noun, std::move(names)), *this;
  }
  Axis one_of_methods(const std::string& noun) { return option().one_of_methods(noun), *this; }
  // The values now, for reports; and others in their place, for presets.
  std::vector<T> values() const { return {stored().begin(), stored().end()}; }
  void set(const std::vector<T>& values) const { stored().assign(values.begin(), values.end()); }
  // Trials come in the order of the axes, the first varying slowest; but this one varies slower than all others.
  // Columns are in the order of the axes.
  Axis slowest() { return data_->slowest = true, *this; }

 private:
  auto& stored() const { return std::get<std::vector<StoredAxisValue<T>>>(data_->values); }
  CliOption& option() const {
    internal_check(data_->declared, "bounds of the axis {}, whose values no option gives", data_->name);
    return *data_->declared;
  }
  AxisData* data_;
};

}  // namespace plumb::lab
