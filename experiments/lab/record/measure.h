// Descriptions of the values that a problem measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"

namespace plumb::lab {

// The names of values that every problem measures: the training loss, and the loss on validation data.
inline constexpr const char *train_loss = "train_loss", *val_loss = "val_loss";

// The direction in which a value is better.
enum class Better { lower, higher };
constexpr auto names_of(Better) { return std::array{"lower", "higher"}; }
// The unit of a value, which decides how reports print it.
enum class Unit {
  plain,    // a number, such as a loss in nats or bits per byte
  fraction  // a number in 0..1 that reports print in percent, such as an accuracy
};
constexpr auto names_of(Unit) { return std::array{"plain", "fraction"}; }

// A value that a problem measures.
struct Measure {
  std::string name;   // such as "val_accuracy"
  std::string title;  // for tables, such as "val accuracy"
  Better better = Better::lower;
  Unit unit = Unit::plain;
  // The value of a guess that knows nothing; no value if it is unknown. The text of the level for reports, such as
  // "ln 28 = 3.332"; if it is empty, reports print the number.
  std::optional<double> chance = {};
  std::string chance_text = {};
  // A smaller median difference decides no claim, unless a trial failed. Example: two samples of 10,000 for an
  // accuracy. 0: no such limit.
  double resolution = 0;
  // The largest difference that does not matter (equal_within); no value: as the name says.
  std::optional<double> equal_within = {};
};

// A reference level of a measured value. Charts of the value show the level as a dashed line.
struct Reference {
  std::string value;  // name of the value, such as "val_accuracy"
  double level;
  std::string name;     // name of the level, such as "chance, 10 %"
  bool chance = false;  // whether the level is that of a guess that knows nothing
  Better better = Better::lower;
  // Whether the level is the result of a simple model, as the levels of DataFacts::references are. A network that is
  // not better has learned nothing that needs a network.
  bool baseline = false;
};

// The value of a trial by which a search chooses learning rates, and its direction.
struct RateCriterion {
  std::string value = "train_loss";
  Better better = Better::lower;

  // Whether the training loss chooses, as in most studies.
  bool is_training_loss() const { return value == RateCriterion().value; }
  // v as a cost, of which lower is better: v or -v. Therefore cost(cost(v)) is v.
  double cost(double v) const { return better == Better::lower ? v : -v; }
  bool operator==(const RateCriterion&) const = default;
};

// The measure with this name; null if there is none.
const Measure* find_measure(const std::vector<Measure>& measures, std::string_view name);
// The unit of a value of a trial. A value that is no measure of the problem is a fraction if its name ends in
// "accuracy", and a plain number otherwise.
Unit unit_of(const std::vector<Measure>& measures, std::string_view name);
// Whether a value says how well a network trains, so that a trial that did not train has the worst value: a measure of
// the problem, a fraction, or a name that ends in "loss" or begins with "steps_to".
bool is_about_training(const std::vector<Measure>& measures, std::string_view name);
// The direction in which a value is better. A value that is no measure of the problem is better if it is lower, unless
// it is a fraction.
Better better_of(const std::vector<Measure>& measures, std::string_view name);
// The largest difference of a value that does not matter: that of its measure, or else 0.05 for losses and 0.01 for
// accuracies. Empty for other values.
std::optional<double> equal_within(const std::vector<Measure>& measures, std::string_view name);
// Whether a value is a time or a speed, which differs from run to run: "seconds", and names that end in "_per_second".
// Tables, the progress and comparisons of ledgers leave out such values.
bool is_time(std::string_view name);
// The score of a problem: the first measure whose higher values are better, such as val_accuracy. Reports draw the
// score against depth. Null if there is none.
const Measure* score_of(const std::vector<Measure>& measures);

// The measures of classification: the training loss and val_loss in nats, and val_accuracy. For fewer than two classes,
// no measure has a chance level. `validation_images` is the number of samples of an evaluation; 0: unknown.
std::vector<Measure> measures_of_classification(std::int64_t classes, std::int64_t validation_images = 0);

}  // namespace plumb::lab
