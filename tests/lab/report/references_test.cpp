#include "experiments/lab/report/references.h"

#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

TEST_CASE("references say that no trial is better than the baseline only if that holds for every value") {
  const auto title = [](const Values& first, const Values& second) {
    StudyResults results;
    const std::string name = "a linear model on the pixels";
    results.judging.references = {
        {.value = "train_loss", .level = 2, .name = name, .baseline = true},
        {.value = "val_loss", .level = 2, .name = name, .baseline = true},
        {.value = "val_accuracy", .level = 0.4, .name = name, .better = Better::higher, .baseline = true}};
    results.trials = {trial_of("a", 6, 0, first), trial_of("b", 6, 0, second)};
    return references_section(results).title;
  };
  const auto says = contains("no trial is better than a linear model on the pixels");
  const Values worse{{"train_loss", 2.1}, {"val_loss", 2.1}, {"val_accuracy", 0.3}};
  CHECK_THAT(title(worse, worse), says);
  CHECK_THAT(title(worse, {{"train_loss", 1.0}, {"val_loss", 2.1}, {"val_accuracy", 0.4}}), says);
  CHECK_THAT(title(worse, {{"val_loss", 2.1}, {"val_accuracy", 0.5}}), !says);
  CHECK_THAT(title(worse, {{"val_loss", 1.9}, {"val_accuracy", 0.3}}), !says);
  CHECK_THAT(title({{"val_loss", 2.1}}, {{"val_loss", 2.2}}), says);
  CHECK_THAT(title({{"train_loss", 2.1}}, {}), !says);
}
