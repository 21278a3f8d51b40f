// Reference levels for the values of a study: chance, a linear model on the pixels, and known optima.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// A reference level of a measured value. Charts of the value show the level as a dashed line.
struct Reference {
  std::string value;  // name of the value, such as "val_accuracy"
  double level;
  std::string name;  // name of the level, such as "chance, 10 %"
};

// Whether the name of a value is that of an accuracy, a fraction in 0..1: "accuracy", "val_accuracy".
bool is_accuracy(std::string_view value);
// A level of a value as text: "38.1 %" for an accuracy, "1.49" for other values.
std::string describe_level(std::string_view value, double level);

// The levels of random guessing in classification: ln(classes) for losses, 1/classes for the accuracy. Empty for fewer
// than two classes.
std::vector<Reference> chance_references(std::int64_t classes);

// The levels of a linear model on the pixels. A network that is not better than the linear model has learned nothing
// that needs a network.
inline constexpr const char* linear_model_name = "a linear model on the pixels";
std::vector<Reference> references_of(const LinearModel& model);

// The loss of a uniform guess, ln(classes). Infinity for fewer than two classes, so that no loss is near chance.
double chance_loss(std::int64_t classes);

}  // namespace plumb::lab
