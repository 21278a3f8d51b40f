#include "experiments/lab/stats/trained.h"

#include <cmath>

#include "experiments/lab/record/chance.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb::lab;
using plumb::test::infinity;

namespace {

const double chance = std::log(10.0);  // of ten classes

}  // namespace

TEST_CASE("a gap within a method separates trials that trained from trials that did not") {
  const auto gap = training_gap({{0.30, 0.31, 1.90}, {0.28, 0.29, 0.31}}, chance);
  REQUIRE(gap);
  CHECK(gap->below == 0.31);
  CHECK(gap->above == 1.90);
  CHECK(has_trained(0.31, chance, gap));
  CHECK_FALSE(has_trained(1.90, chance, gap));
  // Losses near chance, and diverged trials, did not train, with or without a gap.
  CHECK_FALSE(has_trained(0.96 * chance, chance, {}));
  CHECK_FALSE(has_trained(infinity, chance, {}));
  CHECK(has_trained(0.94 * chance, chance, {}));
  CHECK(with_failures({{0.30, 0.31, 1.90}, {0.28, infinity, 2.29}}, chance) ==
        std::vector<Outcomes>{{0.30, 0.31, infinity}, {0.28, infinity, infinity}});
}

TEST_CASE("a loss of soft targets is compared with chance above the entropy of the targets") {
  CHECK(clean_loss(2.1, 0, chance) == 2.1);
  CHECK(clean_loss(2.1, 0, infinity) == 2.1);
  CHECK(clean_loss(chance, 2.2, chance) == Approx(chance));
  CHECK(clean_loss(2.2, 2.2, chance) == Approx(0).margin(1e-12));
  // Half of the way from the entropy to chance is half of chance.
  CHECK(clean_loss(1.5, 1, 2) == 1);
  CHECK(clean_loss(1.5, 1, infinity) == 0.5);
  // No loss tells that a network learned something if a perfect network is not better than chance.
  CHECK(clean_loss(1.5, 2, 2) == infinity);
  CHECK(clean_loss(infinity, 1, 2) == infinity);
  CHECK(std::isnan(clean_loss(std::nan(""), 1, 2)));
}

TEST_CASE("there is no gap between two methods, in few losses, in a wide spread and far from chance") {
  // Each method is on one side: one is worse than the other, and both trained.
  CHECK_FALSE(training_gap({{0.30, 0.31, 0.30}, {1.90, 1.91, 1.92}}, chance));
  CHECK_FALSE(training_gap({{0.30, 1.90}}, chance));
  // The losses on one side spread too much, or the gap is not wider than half of the range.
  CHECK_FALSE(training_gap({{0.30, 0.40, 1.90}, {0.35, 0.45, 0.25}}, chance));
  CHECK_FALSE(training_gap({{0.30, 0.301, 1.00, 1.001, 1.7, 1.701}}, infinity));
  // The slowest seed is nearer to the best seeds than to chance, so it trained.
  CHECK_FALSE(training_gap({{0.30, 0.301, 0.90}, {0.30, 0.302, 0.301}}, chance));
  CHECK(training_gap({{0.30, 0.301, 0.90}, {0.30, 0.302, 0.301}}, infinity));
  CHECK_FALSE(training_gap({}, chance));
}
