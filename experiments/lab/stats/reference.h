// Reference levels for the values of a study: chance, a linear model on the pixels, and known optima.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/data_facts.h"

namespace plumb::lab {

// A reference level of a measured value. Charts of the value show the level as a dashed line.
struct Reference {
  std::string value;  // name of the value, such as "val_accuracy"
  double level;
  std::string name;     // name of the level, such as "chance, 10 %"
  bool chance = false;  // whether the level is that of a guess that knows nothing
  Better better = Better::lower;
};

// A level of a value as text: "38.1 %" for a fraction, "1.49" for a plain number.
std::string describe_level(Unit unit, double level);

// The level of random guessing of a value, such as 0.1 for "val_accuracy" with 10 classes; no value if it is unknown.
std::optional<double> chance_of(const std::vector<Reference>& references, std::string_view value);

// The chance levels of the measures that have one.
std::vector<Reference> chance_references(const std::vector<Measure>& measures);

// The levels of a linear model on the pixels. A network that is not better than the linear model has learned nothing
// that needs a network.
inline constexpr const char* linear_model_name = "a linear model on the pixels";
std::vector<Reference> references_of(const LinearModel& model);

}  // namespace plumb::lab
