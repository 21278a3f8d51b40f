// Levels that the numbers of a study are compared with: chance, a linear model on the pixels, the optimum if it is known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::lab {

struct PlotRule;
struct Section;
struct StudyResults;

// A level of a value, drawn as a dashed line in its charts.
struct Reference {
  std::string value;  // "val_accuracy"
  double level;
  std::string name;  // "chance, 10 %"
};

// Whether a value is an accuracy, a share in 0..1: "accuracy", "val_accuracy".
bool is_accuracy(std::string_view value);
std::string describe_level(std::string_view value, double level);  // "38.1 %" of an accuracy, else "1.49"

// Chance for a training on labelled images: ln(classes) for losses, 1/classes for the accuracy. Empty for fewer than two classes.
std::vector<Reference> chance_references(std::int64_t classes);

// The dashed lines of a chart of `value`, whose values lie in low..high: those that are not so far that they would flatten it.
std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low, double high);

// Each reference beside the means of the arms that ended ok. The title says where no arm is better than a linear model. Empty where no arm has one of
// the values.
Section references_section(const StudyResults& results);

}  // namespace plumb::lab
