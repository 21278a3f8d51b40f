// Reference levels for the values of a study: chance, baselines and known optima.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/measure.h"

namespace plumb::lab {

// A level of a value as text: "38.1 %" for a fraction, "1.49" for a plain number.
std::string describe_level(Unit unit, double level);

// The level of random guessing of a value, such as 0.1 for "val_accuracy" with 10 classes; no value if it is unknown.
std::optional<double> chance_of(const std::vector<Reference>& references, std::string_view value);

// The chance levels of the measures that have one.
std::vector<Reference> chance_references(const std::vector<Measure>& measures);

}  // namespace plumb::lab
