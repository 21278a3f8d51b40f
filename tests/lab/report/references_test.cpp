#include "experiments/lab/report/references.h"

#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

TEST_CASE("references say that no trial is better than the baseline only if that holds for every value") {
  const auto line = [](const Values& first, const Values& second) {
    StudyResults results;
    const std::string name = "a linear model on the pixels";
    results.judging.references = {
        {.value = "train_loss", .level = 2, .name = name, .baseline = true},
        {.value = "val_loss", .level = 2, .name = name, .baseline = true},
        {.value = "val_accuracy", .level = 0.4, .name = name, .better = Better::higher, .baseline = true}};
    results.trials = {trial_of("a", 6, 0, first), trial_of("b", 6, 0, second)};
    return known_levels(results);
  };
  const auto says = contains("No trial is better than a linear model on the pixels");
  const Values worse{{"train_loss", 2.1}, {"val_loss", 2.1}, {"val_accuracy", 0.3}};
  CHECK_THAT(line(worse, worse), says);
  CHECK_THAT(line(worse, {{"train_loss", 1.0}, {"val_loss", 2.1}, {"val_accuracy", 0.4}}), says);
  CHECK_THAT(line(worse, {{"val_loss", 2.1}, {"val_accuracy", 0.5}}), !says);
  CHECK_THAT(line(worse, {{"val_loss", 1.9}, {"val_accuracy", 0.3}}), !says);
  CHECK_THAT(line({{"val_loss", 2.1}}, {{"val_loss", 2.2}}), says);
  CHECK_THAT(line({{"train_loss", 2.1}}, {}), !says);
  CHECK(line(worse, {{"val_loss", 1.9}}) ==
        "Known levels: a linear model on the pixels (train_loss 2, val_loss 2, val_accuracy 40 %).");
}

TEST_CASE("the line of known levels begins with chance, and chance alone is no line") {
  StudyResults results;
  results.judging.references = chance_references(measures_of_classification(10));
  results.trials = {trial_of("a", 6, 0, {{"train_loss", 1}, {"val_accuracy", 0.5}})};
  CHECK(known_levels(results).empty());
  results.judging.references.push_back({.value = "val_accuracy", .level = 0.9, .name = "the best published"});
  results.judging.references.push_back({.value = "not_measured", .level = 1, .name = "another"});
  CHECK(known_levels(results) ==
        "Known levels: chance (train_loss 2.303, val_accuracy 10 %), the best published (val_accuracy 90 %).");
}
