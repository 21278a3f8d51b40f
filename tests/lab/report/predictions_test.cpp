// Tests of the prediction for one image.
#include "experiments/lab/report/predictions.h"

#include <cmath>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a prediction does not depend on a common offset of its logits") {
  for (const double offset : {0.0, 1e8, -1e30}) {
    const std::vector<double> logits(3, offset);
    const lab::Prediction p = lab::prediction_of(logits, 1, "image", 0);
    CHECK(p.top.front().second == Approx(1.0 / 3));
    CHECK(p.loss.value() == Approx(std::log(3.0)));
  }
}
