#include "experiments/lab/report/saturation.h"

#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

TEST_CASE("a study whose best accuracy is at least 97 percent is saturated at that depth") {
  const std::vector<Measure> accuracy = measures_of_classification(10);
  const auto trials = [](double shallow, double deep) {
    return std::vector<TrialResult>{
        trial_of("a", 6, 0, {{"val_accuracy", shallow}}), trial_of("a", 6, 1, {{"val_accuracy", shallow - 0.02}}),
        trial_of("b", 6, 0, {{"val_accuracy", 0.3}}), trial_of("a", 12, 0, {{"val_accuracy", deep}})};
  };
  CHECK(saturation(trials(0.97, 0.5), accuracy).empty());  // the mean over the seeds is 0.96
  CHECK_THAT(saturation(trials(0.99, 0.5), accuracy),
             contains("Saturated at depth 6: the best val accuracy is at least 97 %. This measure cannot rank"));
  CHECK_THAT(saturation(trials(0.99, 1), accuracy), contains("Saturated at depths 6, 12: "));
  CHECK(saturation({trial_of("a", 6, 0, {{"train_loss", 0.1}})}, accuracy).empty());
  CHECK(saturation({dead("a", 6, 0, 3)}, accuracy).empty());
  TrialResult without_depth = trial_of("a", 0, 0, {{"val_accuracy", 1}});
  CHECK_THAT(saturation({without_depth}, accuracy), contains("Saturated: "));
}

TEST_CASE("the score of a problem decides about saturation if the score is a fraction") {
  std::vector<Measure> measures{
      {.name = "train_loss", .title = "train loss"},
      {.name = "val_ap", .title = "AP", .better = Better::higher, .unit = Unit::fraction},
      {.name = "val_accuracy", .title = "accuracy", .better = Better::higher, .unit = Unit::fraction}};
  const std::vector<TrialResult> trials{trial_of("a", 6, 0, {{"val_ap", 0.98}, {"val_accuracy", 0.2}})};
  CHECK_THAT(saturation(trials, measures), contains("Saturated at depth 6: the best AP is at least 97 %"));
  measures[1].unit = Unit::plain;
  CHECK(saturation(trials, measures).empty());
  measures.resize(1);
  CHECK(saturation(trials, measures).empty());
}
