#include "experiments/lab/stats/comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

using Order = Difference::Order;
using Training = Difference::Training;
using Doubt = Difference::Doubt;

// Series of normal losses. All series share a random part for each seed.
std::vector<Outcomes> normal_series(std::mt19937_64& g, std::size_t methods, std::size_t seeds) {
  std::normal_distribution<double> normal;
  Outcomes common(seeds);
  for (double& c : common) c = normal(g);
  std::vector<Outcomes> series(methods, common);
  for (Outcomes& s : series)
    for (double& y : s) y += normal(g);
  return series;
}

// The first of these series, compared with the second.
Difference first_of(const std::vector<Outcomes>& series) { return compare(series, {{0, 1}}).at(0); }

}  // namespace

TEST_CASE("differences of pairs have an interval and an order") {
  // Differences -1, -2, -3: mean -2, deviation 1. Two series alone are judged at half of 5 %: t(0.9875, 2) = 6.2053.
  const Difference d = first_of({{1, 2, 3}, {2, 4, 6}});
  CHECK(d.order == Order::undecided);
  CHECK((d.n == 3 && d.trained == 3 && d.trained_first == 3 && d.trained_second == 3));
  CHECK(d.mean == Approx(-2));
  CHECK(d.low == Approx(-2 - 6.205347 / std::sqrt(3)).epsilon(1e-6));
  CHECK(d.high == Approx(-2 + 6.205347 / std::sqrt(3)).epsilon(1e-6));
  CHECK(pairs_needed(d) == 6);  // five pairs would suffice for t, but two series alone need six
  // Two pairs decide nothing, even if their differences are almost equal.
  const Difference two = first_of({{1, 2}, {2, 3.0001}});
  CHECK((two.order == Order::undecided && std::isinf(two.low) && pairs_needed(two) == 6));
  const std::vector<Outcomes> six{{1, 2, 3, 4, 3, 2},
                                  {2, 4, 6, 6, 5, 4}};  // the differences are -1, -2, -3, -2, -2, -2
  CHECK(first_of(six).order == Order::lower);
  CHECK(compare(six, {{1, 0}}).at(0).order == Order::higher);
  // A part that both trials of a seed share does not widen the interval.
  CHECK(first_of({{1, 102, 3, 1004, 3, 2}, {2, 104, 6, 1006, 5, 4}}).high == Approx(first_of(six).high));
  // Missing trials form no pairs, and one pair has no finite interval.
  CHECK(first_of({{1, not_a_number, 3, not_a_number}, {2, 4, not_a_number, not_a_number}}).n == 1);
  CHECK(std::isinf(first_of({{1}, {2}}).low));
  // If the differences have no variance, nothing is decided.
  CHECK(first_of({{1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}}).order == Order::undecided);
  // If all outcomes are equal, no number of pairs would decide.
  const Difference same = first_of({{1, 2, 3}, {1, 2, 3}});
  CHECK((same.order == Order::undecided && pairs_needed(same) == 0));
  CHECK_THAT(error_of([] {
               compare({{1, 2}, {1}}, {{0, 1}});
             }),
             contains("[compare] expected outcomes at the same seeds, got 2 and 1"));
}

TEST_CASE("in a section of four methods three seeds can decide, and each refusal has a reason") {
  const Outcomes a{1.00, 1.02, 1.01}, b{2.01, 2.00, 2.02}, c{2.02, 2.01, 2.00}, d{2.00, 2.02, 2.02};
  CHECK(first_of({a, b, c, d}).order == Order::lower);
  const Difference alone = first_of({a, b});
  CHECK((alone.order == Order::undecided && alone.doubt == Doubt::few_pairs));
  // The losses of one method vary much more than those of the other.
  const Difference spread = first_of({{1, 1, 1, 1.001, 1.001, 1}, {-2, -3, -4, -5, -4, -6}});
  CHECK((spread.order == Order::undecided && spread.doubt == Doubt::spread));
  CHECK_THAT(describe(spread), contains("; undecided: the two spreads differ too much to trust a mean"));
  // Losses above 0 whose ratio is far larger than outliers explain, and differences of ten deviations, are decided.
  CHECK(first_of({{0.016, 0.015, 0.014, 0.014, 0.015, 0.015}, {0.64, 0.59, 0.5, 0.72, 0.63, 0.23}}).order ==
        Order::lower);
  CHECK(first_of({{1, 1, 1, 1.001, 1.001, 1}, {-20, -21, -22, -23, -22, -24}}).order == Order::higher);
  // One of seven differences has the other sign, which the sign test of two series alone does not accept.
  const Difference signs = first_of({{0, 0.5, 0, 0.5, 0, 0.5, 0.3}, {1, 1.4, 1.1, 1.6, 1, 1.5, 0.2}});
  CHECK((signs.order == Order::undecided && signs.doubt == Doubt::signs));
  // A difference below the resolution of the value decides nothing.
  Contrast small{.first = {1, 2, 3, 4, 5, 6}, .second = {1.1, 2.2, 3.1, 4.2, 5.1, 6.2}};
  CHECK(judge_family({small}).at(0).order == Order::lower);
  small.resolution = 0.2;
  CHECK(judge_family({small}).at(0).doubt == Doubt::resolution);
  // A margin needs six seeds that all trained.
  Contrast margin{.first = {1, 2, 3, 4, 5, 6}, .second = {1.1, 2.2, 3.1, 4.2, 5.1, 6.2}, .margin = 1};
  CHECK(judge_family({margin}).at(0).order == Order::lower);
  margin.first.push_back(infinity), margin.second.push_back(7);
  CHECK(judge_family({margin}).at(0).doubt == Doubt::not_all);
}

TEST_CASE("a difference in words") {
  CHECK(
      describe(first_of({{1, 2, 3}, {2, 4, 6}})) ==
      "lower by 2, 97.5 % interval -1.58 to 5.58, 3 pairs; 3 of 3 and 3 of 3 seeds trained, up to 63 % may still fail");
  CHECK(describe(first_of({{1}, {2}})) == "lower by 1 in one pair; 1 of 1 and 1 of 1 seeds trained");
  CHECK(describe(first_of({{not_a_number}, {2}})) == "no pairs");
  CHECK_THAT(describe(first_of({{1, 1, 1, 1, 1, 1}, {infinity, infinity, infinity, infinity, infinity, infinity}})),
             contains("no seed trained with both; trains more often; 6 of 6 and 0 of 6 seeds trained"));
  CHECK_THAT(describe(first_of({{1, 2, 3, infinity}, {2, 4, 6, 1}})), contains("lower by 2 where both train, "));
}

TEST_CASE("a difference that is the same in every pair says why it is decided or not") {
  const Outcomes base{1, 1.25, 1.5, 2, 0.75, 1.125, 1.75};
  const auto raised = [&](double by) {
    Outcomes other = base;
    for (double& x : other) x += by;
    return other;
  };
  const Difference alone = first_of({raised(0.5), base});
  CHECK((alone.order == Order::undecided && alone.doubt == Doubt::same && pairs_needed(alone) == 0));
  CHECK(describe(alone) ==
        "higher by 0.5 in every pair, 97.5 % interval 0.5 to 0.5, 7 pairs; 7 of 7 and 7 of 7 seeds trained, up to 35 % "
        "may still fail; undecided: the difference is the same in every pair, so the pairs do not tell how much it "
        "varies");
  // Equal outcomes need no further reason.
  const Difference equal = first_of({base, base});
  CHECK((equal.order == Order::undecided && equal.doubt == Doubt::none));
  CHECK(describe(equal).starts_with("equal in every pair, 97.5 % interval 0 to 0, 7 pairs; "));
  CHECK(first_of({raised(0.5), base, raised(1), raised(2)}).doubt == Doubt::same);
  // Other pairs of the section, which vary, decide.
  Outcomes third = base, fourth = raised(1);
  third[0] += .3, third[1] -= .2, fourth[2] += .4, fourth[5] -= .3;
  const Difference decided = first_of({raised(0.5), base, third, fourth});
  CHECK(decided.order == Order::higher);
  CHECK_THAT(describe(decided), contains("higher by 0.5 in every pair, ") &&
                                    contains("; the other pairs of the section give its error") &&
                                    !contains("undecided"));
  CHECK_THAT(describe(first_of({{1, 2}, {2, 3}})), contains("lower by 1 in two pairs"));
}

TEST_CASE("as many seeds as may still fail are those of the exact interval") {
  CHECK(may_fail(3, 3) == Approx(0.632).epsilon(1e-3));
  CHECK(may_fail(4, 4) == Approx(0.527).epsilon(1e-3));
  CHECK(may_fail(6, 6) == Approx(0.393).epsilon(1e-3));
  CHECK(may_fail(5, 6) == Approx(0.582).epsilon(1e-3));
  CHECK(may_fail(0, 6) == 1);
}

TEST_CASE("a series that trains less often is found by the exact paired test") {
  const Outcomes good{1, 1, 1, 1, 1, 1}, never(6, infinity);
  CHECK(first_of({good, never}).training == Training::more_often);  // p = 2 / 64
  CHECK(first_of({never, good}).training == Training::less_often);
  CHECK(first_of({good, never}).order == Order::undecided);
  const Difference five = first_of({{1, 1, 1, 1, 1}, Outcomes(5, infinity)});  // p = 2 / 32
  CHECK(five.training == Training::undecided);
  CHECK(pairs_needed(five) == 6);
  // Seeds at which neither series trained say nothing.
  CHECK(first_of({{infinity, 1, 1, 1, 1, 1}, never}).training == Training::undecided);
  // Two such pairs are a family, and need seven seeds. Pairs that cannot be decided do not count.
  CHECK(compare({good, never, never}, against_first(3)).at(0).training == Training::undecided);
  CHECK(compare({Outcomes(7, 1.0), Outcomes(7, infinity), Outcomes(7, infinity)}, against_first(3)).at(0).training ==
        Training::less_often);
  CHECK(compare({good, never, good, good, good}, against_first(5)).at(0).training == Training::less_often);
}

TEST_CASE("a later look is judged at a lower level") {
  CHECK(level_of_look(1) == family_level);
  CHECK(level_of_look(2) == family_level / 4);
  CHECK(level_of_look(3) == family_level / 8);
  const std::vector<Outcomes> six{{1, 2, 3, 4, 3, 2}, {2, 4, 6, 6, 4.5, 3.5}};
  const Difference first = first_of(six), second = compare(six, {{0, 1}}, level_of_look(2)).at(0);
  CHECK(second.high - second.low > first.high - first.low);
}

TEST_CASE("Holm's procedure relaxes the level pair by pair and a decided interval does not contain 0") {
  std::mt19937_64 g(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<Outcomes> series = normal_series(g, 6, 5);
    for (std::size_t m = 1; m < 4; ++m)
      for (double& y : series[m]) y += 4.0 * static_cast<double>(m);
    const std::vector<Difference> found = compare(series, against_first(6));
    std::vector<double> levels;
    for (const Difference& d : found) {
      const bool apart = d.low > 0 || d.high < 0;
      if (d.order != Order::undecided) CHECK(apart);
      if (d.order == Order::undecided) CHECK((!apart || d.doubt != Doubt::none));
      levels.push_back(d.level);
    }
    std::ranges::sort(levels);
    CHECK(levels.front() == Approx(0.025 / 5));
    CHECK(levels.back() <= 0.025);
    if (std::ranges::any_of(found, [](const Difference& d) { return d.order != Order::undecided; }))
      CHECK(levels[1] == Approx(0.025 / 4));
  }
}

TEST_CASE("a method that sometimes does not train does not widen the intervals of the others") {
  std::mt19937_64 g(0);
  std::vector<Outcomes> apart = normal_series(g, 5, 6);
  for (double& y : apart[1]) y -= 20;
  CHECK(compare(apart, {{1, 0}})[0].order == Order::lower);
  const double width = compare(apart, against_first(5))[0].high;
  apart.push_back({infinity, 100, infinity, -100, infinity, infinity});
  const std::vector<Difference> beside = compare(apart, against_first(6));
  CHECK(beside[0].order == Order::lower);
  CHECK(beside[0].high - width < 2);  // the interval is wider only because the family is larger
}
