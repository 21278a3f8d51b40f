#include "experiments/lab/report/saturation.h"

#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

TEST_CASE("a study whose best accuracy is at least 97 percent is saturated at that depth") {
  const auto trials = [](double shallow, double deep) {
    return std::vector<TrialResult>{
        trial_of("a", 6, 0, {{"val_accuracy", shallow}}), trial_of("a", 6, 1, {{"val_accuracy", shallow - 0.02}}),
        trial_of("b", 6, 0, {{"val_accuracy", 0.3}}), trial_of("a", 12, 0, {{"val_accuracy", deep}})};
  };
  CHECK(saturation(trials(0.97, 0.5)).empty());  // the mean over the seeds is 0.96
  CHECK_THAT(saturation(trials(0.99, 0.5)),
             contains("Saturated at depth 6: the best validation accuracy is at least 97 %"));
  CHECK_THAT(saturation(trials(0.99, 1)), contains("Saturated at depths 6, 12: "));
  CHECK(saturation({trial_of("a", 6, 0, {{"train_loss", 0.1}})}).empty());
  CHECK(saturation({dead("a", 6, 0, 3)}).empty());
  TrialResult without_depth = trial_of("a", 0, 0, {{"val_accuracy", 1}});
  CHECK_THAT(saturation({without_depth}), contains("Saturated: "));
}
