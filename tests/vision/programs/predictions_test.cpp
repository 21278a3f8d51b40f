// Tests of predictions and of the texts that show them.
#include "experiments/vision/programs/predictions.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a prediction does not depend on a common offset of its logits") {
  for (const double offset : {0.0, 1e8, -1e30}) {
    const std::vector<double> logits(3, offset);
    const vision::Prediction p = vision::prediction_of(logits, 1, "image", 0);
    CHECK(p.top.front().second == Approx(1.0 / 3));
    CHECK(p.loss.value() == Approx(std::log(3.0)));
  }
}

TEST_CASE(
    "pictures are spread over the classes even if there are more classes than pictures and unlabelled images come "
    "first") {
  const auto numbers = [](const std::vector<int>& labels, std::size_t most) {
    std::vector<vision::Prediction> predictions;
    for (const int label : labels)
      predictions.push_back({.label = label < 0 ? std::nullopt : std::optional<std::int64_t>(label)});
    return vision::spread_over_classes(predictions, most);
  };
  using Numbers = std::vector<std::size_t>;
  CHECK(numbers({0, 0, 0, 0, 1, 1, 2}, 5) == Numbers{0, 1, 4, 5, 6});
  CHECK(numbers({2, 0, 1, 0}, 9) == Numbers{0, 1, 2, 3});
  CHECK(numbers({-1, -1, -1}, 2) == Numbers{0, 1});
  CHECK(numbers({-1, 7, -1}, 2) == Numbers{0, 1});
  CHECK(numbers({0, 1, 2, 3, 4, 5}, 3) == Numbers{0, 2, 4});
}

TEST_CASE("for more than 20 classes the page shows the most confused pairs and the terminal the worst classes") {
  const vision::EvaluationFacts facts{.weights = "w", .data = "d", .classes = 30};
  std::vector<vision::Prediction> predictions;
  for (std::int64_t label = 0; label < 30; ++label)
    for (int copy = 0; copy < 2; ++copy)
      predictions.push_back({.image = "x",
                             .top = {{label == 7 || (label == 9 && copy == 0) ? 8 : label, 0.5}},
                             .label = label,
                             .loss = 1.0});
  const std::string page = vision::predictions_report(facts, predictions, {}).html;
  const std::size_t most = page.find(
                        "<td>class 7</td><td>class 8</td><td class=\"num\">2</td><td class=\"num\">100.0 %</td>"),
                    less = page.find(
                        "<td>class 9</td><td>class 8</td><td class=\"num\">1</td><td class=\"num\">50.0 %</td>");
  CHECK((most != page.npos && less != page.npos && most < less));
  CHECK_THAT(page, !contains("Confusion matrix"));
  const std::string text = vision::predictions_text(facts, predictions);
  CHECK_THAT(text, contains("the likeliest class is right for 57 (95.0 %)") &&
                       contains("the 20 classes with the lowest accuracy; all 30 are in classes.csv"));
  CHECK((text.find("class 7 ") < text.find("class 9 ") && text.find("class 9 ") < text.find("class 0 ")));
}
