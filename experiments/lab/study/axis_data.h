// The data of the axes of a study.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace plumb::lab
