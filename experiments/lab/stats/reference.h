// Levels that the numbers of a study are compared with: chance, a linear model on the pixels, the optimum if it is
// known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// A level of a value, drawn as a dashed line in its charts.
struct Reference {
  std::string value;  // "val_accuracy"
  double level;
  std::string name;  // "chance, 10 %"
};

// Whether a value is an accuracy, a share in 0..1: "accuracy", "val_accuracy".
bool is_accuracy(std::string_view value);
std::string describe_level(std::string_view value, double level);  // "38.1 %" of an accuracy, else "1.49"

// Chance for a training on labelled images: ln(classes) for losses, 1/classes for the accuracy. Empty for fewer than
// two classes.
std::vector<Reference> chance_references(std::int64_t classes);

// A linear model on the pixels: a network that does no better has learned nothing that needs a network.
inline constexpr const char* linear_model_name = "a linear model on the pixels";
std::vector<Reference> references_of(const LinearModel& model);

// ln(classes), or infinity for fewer than two classes: nothing is near that.
double chance_loss(std::int64_t classes);

}  // namespace plumb::lab
