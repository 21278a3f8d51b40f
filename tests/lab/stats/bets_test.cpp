#include "experiments/lab/stats/bets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/stats/comparison.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

const Outcomes six_wins{-.5, -.3, -.7, -.4, -.6, -.2};  // against zeros

// A value from the reference program, which prints six decimals.
Approx printed(double value) { return Approx(value).margin(6e-7).epsilon(0); }

// The state of a duel after a seed, and that state for each number of seeds.
struct State {
  std::int64_t wins, losses;
  double evidence;
};
void check_states(const Outcomes& first, const Outcomes& second, const std::vector<State>& states) {
  REQUIRE(states.size() == first.size());
  for (std::size_t n = 1; n <= states.size(); ++n) {
    const auto end = static_cast<std::ptrdiff_t>(n);
    const Duel d = duel({first.begin(), first.begin() + end}, {second.begin(), second.begin() + end});
    INFO(n << " seeds");
    CHECK(d.seeds == static_cast<std::int64_t>(n));
    CHECK((d.wins == states[n - 1].wins && d.losses == states[n - 1].losses));
    CHECK(d.evidence == printed(states[n - 1].evidence));
  }
}

double binomial(int n, int k) { return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)); }

Outcomes plus(Outcomes costs, double by) {
  for (double& y : costs) y += by;
  return costs;
}

// Twelve costs that vary, so that 1 more or less is decided by twelve seeds in small families.
const Outcomes twelve{1.0, 1.3, 0.9, 1.1, 1.2, 0.8, 1.0, 1.4, 1.1, 0.9, 1.2, 1.0};
const Outcomes twelve_other{1.1, 1.2, 1.0, 1.0, 1.3, 0.9, 0.9, 1.3, 1.2, 1.0, 1.1, 1.1};

// `twelve` against other costs that are higher by 1, at a rate that a search has chosen.
Contrast lower_by_one() {
  return {.first = {.costs = twelve}, .second = {.costs = plus(twelve_other, 1), .at_this_rate = false}};
}

Difference alone(const Contrast& c) { return judge_family({c}).at(0); }

}  // namespace

// The values are those of the reference program, an independent program in Python.
TEST_CASE("the evidence has the values of the reference program") {
  CHECK(sign_evidence(6, 0) == printed(11.492813));
  CHECK(sign_evidence(5, 1) == printed(1.535885));
  CHECK(sign_evidence(9, 3) == printed(1.343425));
  CHECK(t_evidence(six_wins) == printed(40.691369));
  CHECK(t_evidence({.5, .5, .5, .5}) == printed(31.622777));
  const Outcomes zeros(6, 0);
  check_states(six_wins, zeros,
               {{1, 0, 1}, {2, 0, 1.635535}, {3, 0, 2.952372}, {4, 0, 6.789673}, {5, 0, 19.744059}, {6, 0, 26.092091}});
  check_states(six_wins, {0, 0, 0, infinity, 0, 0},
               {{1, 0, 1}, {2, 0, 1.635535}, {3, 0, 2.952372}, {4, 0, 4.946184}, {5, 0, 8.547296}, {6, 0, 15.079399}});
  check_states(six_wins, Outcomes(6, infinity),
               {{1, 0, 1}, {2, 0, 1.416720}, {3, 0, 2.250160}, {4, 0, 3.769750}, {5, 0, 6.514349}, {6, 0, 11.492813}});
  check_states({1, infinity, 2, 1}, {2, infinity, 2, 3}, {{1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {2, 0, 1.416720}});
}

TEST_CASE("the mean capital of bets over all outcomes is 1") {
  CHECK(bets_on_wins(0, 0) == 1);
  CHECK(bets_on_wins(1, 0) == Approx(2 * (.6 + .7 + .8 + .9 + .97) / 5));
  CHECK(bets_on_wins(0, 1) == Approx(2 * (.4 + .3 + .2 + .1 + .03) / 5));
  CHECK(sign_evidence(3, 7) == sign_evidence(7, 3));
  for (const int n : {1, 2, 5, 12, 30}) {
    double one_sided = 0, two_sided = 0;
    for (int wins = 0; wins <= n; ++wins) {
      const double chance = std::ldexp(binomial(n, wins), -n);
      one_sided += chance * bets_on_wins(wins, n - wins), two_sided += chance * sign_evidence(wins, n - wins);
    }
    CHECK(one_sided == Approx(1).epsilon(1e-10));
    CHECK(two_sided == Approx(1).epsilon(1e-10));
  }
}

TEST_CASE("the t mixture of equal differences is finite, and zeros and single differences are no evidence") {
  CHECK(t_evidence({}) == 1);
  CHECK(t_evidence({3}) == 1);
  CHECK(t_evidence({0, 0, 0, 0}) == 1);
  for (const double difference : {1e-3, -2.0, 0.1}) {
    std::vector<double> equal;
    for (int n = 2; n <= 12; ++n) {
      equal.resize(static_cast<std::size_t>(n), difference);
      const double limit = std::pow(1 + 2.25 * n, (n - 1) / 2.0);
      CHECK(t_evidence(equal) == Approx(limit));
      std::vector<double> almost = equal;
      almost.front() *= 1 + 1e-9;
      CHECK(t_evidence(almost) == Approx(limit));
    }
  }
  CHECK(t_evidence({1, -1}) < 1);
  CHECK(t_evidence({.5, .3, .7}) == Approx(t_evidence({-.5, -.3, -.7})));
  CHECK(t_evidence({5e3, 3e3, 7e3}) == Approx(t_evidence({.5, .3, .7})));
}

// Accuracies of few images often differ by equal amounts, which rounding makes unequal by one bit.
TEST_CASE("differences that are equal but for rounding have the evidence of equal differences") {
  const Outcomes first{.9, .8}, second{.2, .1};
  REQUIRE(first[0] - second[0] != first[1] - second[1]);
  const double one_bit = std::numeric_limits<double>::epsilon();
  CHECK(t_evidence({1 + one_bit, 1 + 2 * one_bit}) == Approx(std::sqrt(5.5)));
  for (int a = 1; a < 100; a += 3)
    for (int b = 1; b < 100; b += 2)
      if (a != b) {
        const double e = duel({a / 100.0, (a + 1) / 100.0}, {b / 100.0, (b + 1) / 100.0}).evidence;
        if (!(std::abs(e - (sign_evidence(2, 0) + std::sqrt(5.5)) / 2) < 1e-6)) FAIL(a << ", " << b << ": " << e);
      }
}

TEST_CASE("seeds count up to the first one without a trial") {
  const Duel d = duel({0, 0, not_a_number, 0}, {1, 2, 3, 4}), e = duel({0, 0, 0, 0}, {1, 2, not_a_number, 4});
  for (const Duel& some : {d, e}) {
    CHECK((some.seeds == 2 && some.wins == 2 && some.losses == 0));
    CHECK(some.differences == std::vector<double>{-1, -2});
    CHECK(some.evidence == duel({0, 0}, {1, 2}).evidence);
  }
  CHECK(duel({not_a_number}, {1}).seeds == 0);
  CHECK(duel({}, {}).evidence == 1);
  CHECK_THAT(error_of([] { duel({1, 2}, {1}); }), contains("expected outcomes at the same seeds, got 2 and 1"));
}

TEST_CASE("a seed that is no bet changes no evidence") {
  const Outcomes first{-.5, -.3, -infinity, -.7, 5}, second{0, 0, 1, 0, -infinity};
  const Duel d = duel(first, second), without = duel({-.5, -.3, -.7}, {0, 0, 0});
  CHECK((d.seeds == 5 && d.wins == 3 && d.losses == 0 && d.failed_first == 0 && d.failed_second == 0));
  // The t mixture still bets, because no trial failed.
  CHECK(d.evidence == without.evidence);
  CHECK(d.differences == without.differences);
  // A failed trial against a seed that is no bet is no bet either.
  const Duel failed = duel({-.5, -.3, -infinity, -.7}, {0, 0, infinity, 0});
  CHECK((failed.failed_second == 0 && failed.evidence == without.evidence));
  CHECK(equality({0, 0, -infinity, 0}, {0, 0, infinity, 0}, 1) == equality({0, 0, 0}, {0, 0, 0}, 1));
}

TEST_CASE("a failed trial loses against a trained one") {
  const Duel d = duel({infinity, 1, infinity, 1}, {1, infinity, infinity, 2});
  CHECK((d.seeds == 4 && d.wins == 2 && d.losses == 1 && d.failed_first == 2 && d.failed_second == 2));
  CHECK(d.differences == std::vector<double>{-1});
  // The size of the margin does not matter.
  for (const double margin : {-5.0, 5.0})
    for (const Tie tie : {Tie::no_bet, Tie::loss, Tie::win}) {
      const Duel with = duel({infinity, 1, infinity}, {1, infinity, infinity}, margin, tie);
      CHECK((with.wins == 1 && with.losses == 1));
    }
}

TEST_CASE("a margin moves the second series and a tie counts as the caller says") {
  const Outcomes first{1, 2, 4}, second{0, 2, 2};  // differences 1, 0, 2
  const auto score = [&](double margin, Tie tie) {
    const Duel d = duel(first, second, margin, tie);
    return std::pair(d.wins, d.losses);
  };
  using Score = std::pair<std::int64_t, std::int64_t>;
  CHECK(score(0, Tie::no_bet) == Score(0, 2));
  CHECK(score(1, Tie::no_bet) == Score(1, 1));
  CHECK(score(1, Tie::loss) == Score(1, 2));
  CHECK(score(1, Tie::win) == Score(2, 1));
  CHECK(score(-1, Tie::win) == Score(0, 3));
  // The evidence is that of shifted values; the differences are those of the values.
  const Duel d = duel(first, second, 1.5);
  CHECK(d.evidence == duel(plus(first, -1.5), second).evidence);
  CHECK(d.differences == std::vector<double>{1, 0, 2});
}

TEST_CASE("evidence counts for a side only while this side is ahead") {
  // The first series wins 15 of 16 seeds, but its mean is higher.
  Outcomes first(16, -1), second(16, 0);
  first[0] = 100;
  const Duel d = duel(first, second);
  CHECK((d.wins == 15 && d.losses == 1));
  CHECK(d.evidence > 20);
  CHECK((d.first_ahead == 1 && d.second_ahead == 1));
  // In the other order, the first series is ahead by signs and mean until the last seed. The largest evidence counts.
  std::swap(first.front(), first.back());
  const Duel late = duel(first, second);
  CHECK(late.evidence < late.first_ahead);
  CHECK(late.first_ahead == duel(Outcomes(15, -1), Outcomes(15, 0)).evidence);
  CHECK(late.second_ahead == 1);
  // Without trained pairs, the wins decide.
  CHECK(duel(six_wins, Outcomes(6, infinity)).first_ahead == printed(11.492813));
  CHECK(duel(Outcomes(6, infinity), six_wins).second_ahead == printed(11.492813));
  // A series with as many losses as wins is not ahead.
  CHECK(duel({-3, 1}, {0, 0}).first_ahead == 1);
  // Exchanged series have exchanged evidence.
  const Duel to = duel(twelve, twelve_other), from = duel(twelve_other, twelve);
  CHECK((to.wins == from.losses && to.losses == from.wins && to.evidence == from.evidence));
  CHECK((to.first_ahead == from.second_ahead && to.second_ahead == from.first_ahead));
}

TEST_CASE("the evidence of an equality is that of the weaker of two bets") {
  const Outcomes ten(10, 1.0);
  const double all = bets_on_wins(10, 0);
  CHECK(equality(ten, ten, .5) == all);
  CHECK(equality(plus(ten, .25), ten, .5) == all);
  // A difference of exactly d loses the bet on its side.
  for (const double difference : {.5, -.5, 2.0, -2.0}) CHECK(equality(plus(ten, difference), ten, .5) == 1);
  // The largest capital counts.
  Outcomes late = ten;
  late[8] = late[9] = 1.5;
  CHECK(equality(late, ten, .5) == bets_on_wins(8, 0));
  // A failed trial loses the bet on its side, and wins the other one. Two failed trials are no bet.
  Outcomes failed = ten;
  failed[4] = infinity;
  const double one_lost = std::max(bets_on_wins(4, 0), bets_on_wins(9, 1));
  CHECK(equality(failed, ten, .5) == one_lost);
  CHECK(equality(ten, failed, .5) == one_lost);
  CHECK(equality(failed, failed, .5) == bets_on_wins(9, 0));
  Outcomes missing = ten;
  missing[7] = not_a_number;
  CHECK(equality(missing, ten, .5) == bets_on_wins(7, 0));
  CHECK(equality({}, {}, .5) == 1);
}

TEST_CASE("Holm's procedure with weights") {
  const auto holm = [](const std::vector<double>& evidence, const std::vector<double>& weights) {
    std::vector<std::pair<bool, double>> results;
    for (const Rejection& r : weighted_holm(evidence, weights, .05)) results.emplace_back(r.rejected, r.needs);
    return results;
  };
  const auto matches = [](const std::vector<std::pair<bool, double>>& found,
                          const std::vector<std::pair<bool, double>>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO(i);
      CHECK(found[i].first == expected[i].first);
      CHECK(found[i].second == Approx(expected[i].second));
    }
  };
  matches(holm({20}, {1}), {{true, 20}});
  matches(holm({19.99}, {1}), {{false, 20}});
  // In the order of evidence times weight, 300, 240, 90, 30: 300 needs 8 / .05, 60 needs 7 / .2, 45 needs 3 / .1, and
  // 30 needs 1 / .05.
  matches(holm({60, 45, 300, 30}, {4, 2, 1, 1}), {{true, 35}, {true, 30}, {true, 160}, {true, 20}});
  // In the order 240, 78, 70, 30: 60 needs 8 / .2, and 39 does not reach 4 / .1. The others keep the sum of 4.
  matches(holm({60, 39, 70, 30}, {4, 2, 1, 1}), {{true, 40}, {false, 40}, {false, 80}, {false, 80}});
  matches(holm({39, 100}, {1, 1}), {{true, 20}, {true, 40}});
  CHECK(weighted_holm({}, {}, .05).empty());
}

TEST_CASE("a comparison at fixed rates needs no neighbours") {
  Contrast c = lower_by_one();
  c.second.at_this_rate = true;
  const Difference d = alone(c);
  CHECK((d.better == Side::first && d.lost == Side::second && d.neighbours == AtNeighbours::this_rate));
  CHECK((d.wanted.empty() && d.beyond.empty() && d.family == 1 && d.needs == Approx(1 / order_level)));
  CHECK((d.evidence == d.duel.first_ahead && d.at_all_rates == d.evidence));
  CHECK((d.median.n == 12 && d.median.value == Approx(-1).margin(.11)));
  std::swap(c.first, c.second);
  CHECK((alone(c).better == Side::second && alone(c).lost == Side::first));
  // Nothing is decided between equal series.
  const Difference same = alone({.first = {.costs = twelve}, .second = {.costs = twelve}});
  CHECK((same.better == Side::none && same.lost == Side::none && same.evidence == 1 && !same.equal));
}

TEST_CASE("the better side must be better at the neighbouring rates of the worse side") {
  Contrast c = lower_by_one();
  // The rate of the better side was chosen by a search, too. Its neighbours do not count.
  c.first.at_this_rate = false;
  const Difference untrained = alone(c);
  CHECK((untrained.better == Side::none && untrained.lost == Side::second));
  CHECK((untrained.neighbours == AtNeighbours::not_trained && untrained.wanted == std::vector{-1, 1}));
  CHECK((untrained.at_all_rates == 1 && untrained.evidence > 20));

  const Outcomes worse = plus(twelve_other, 1.3), better = plus(twelve_other, .9), equal = twelve;
  c.second.neighbours[-1] = worse;
  CHECK(alone(c).wanted == std::vector{1});
  c.second.neighbours[1] = worse;
  const Difference stands = alone(c);
  CHECK((stands.better == Side::first && stands.neighbours == AtNeighbours::yes && stands.wanted.empty()));
  CHECK(stands.at_all_rates == std::min(stands.evidence, duel(c.first.costs, worse).first_ahead));
  // The rate an octave away does not count if the nearer rate is worse than the chosen one.
  c.second.neighbours[2] = equal;
  CHECK(alone(c).better == Side::first);

  // If the nearer rate is better than the chosen one, the next half octave counts as well.
  c.second.neighbours = {{-1, worse}, {1, better}};
  const Difference further = alone(c);
  CHECK((further.better == Side::none && further.neighbours == AtNeighbours::not_trained));
  CHECK(further.wanted == std::vector{2});
  c.second.neighbours[2] = worse;
  CHECK(alone(c).better == Side::first);
  c.second.neighbours[2] = equal;
  const Difference luck = alone(c);
  CHECK((luck.better == Side::none && luck.lost == Side::second && luck.neighbours == AtNeighbours::no));
  CHECK((luck.at_all_rates < 20 && luck.evidence > 20 && luck.wanted.empty()));
  // A rate an octave and a half away never counts.
  c.second.neighbours = {{-1, worse}, {1, better}, {2, plus(twelve_other, .8)}, {3, equal}};
  CHECK(alone(c).better == Side::first);

  // The same holds if the second side is better.
  c.second.neighbours = {{-1, worse}, {1, equal}, {2, worse}};
  CHECK(alone(c).neighbours == AtNeighbours::no);
  std::swap(c.first, c.second);
  const Difference second = alone(c);
  CHECK((second.better == Side::none && second.lost == Side::first && second.neighbours == AtNeighbours::no));
}

TEST_CASE("a neighbour beyond the bound of the rate does not count") {
  Contrast c = lower_by_one();
  c.second.neighbours[-1] = plus(twelve_other, 1.3);
  c.second.beyond = {1, 2};
  const Difference d = alone(c);
  CHECK((d.better == Side::first && d.neighbours == AtNeighbours::yes && d.wanted.empty()));
  CHECK(d.beyond == std::vector{1});
  c.second.beyond = {-2, 1, 2};
  c.second.neighbours[-1] = plus(twelve_other, .9);
  CHECK(alone(c).beyond == std::vector{-2, 1});
}

// A study that was interrupted, or in which a trial ended in an error, has neighbours with fewer seeds.
TEST_CASE("a neighbour that lacks seeds is not trained unless it is beaten already") {
  Contrast c = lower_by_one();
  Outcomes few = plus(twelve_other, 1.3);
  std::fill(few.begin() + 3, few.end(), not_a_number);
  c.second.neighbours = {{-1, plus(twelve_other, 1.3)}, {1, few}};
  const Difference d = alone(c);
  CHECK((d.better == Side::none && d.lost == Side::second && d.neighbours == AtNeighbours::not_trained));
  Outcomes most = plus(twelve_other, 1.3);
  most.back() = not_a_number;
  c.second.neighbours[1] = most;
  CHECK((alone(c).better == Side::first && alone(c).neighbours == AtNeighbours::yes));
  // A neighbour with all seeds that is as good as the better side refutes.
  c.second.neighbours[1] = twelve;
  c.second.neighbours[2] = plus(twelve_other, 1.3);
  CHECK(alone(c).neighbours == AtNeighbours::no);
}

TEST_CASE("an obstacle prevents verdicts and a small difference prevents a verdict of order") {
  Contrast c = lower_by_one();
  c.second.at_this_rate = true;
  c.equal_within = 2;
  CHECK((alone(c).better == Side::first && alone(c).equal && alone(c).within == 2));
  c.obstacle = "no rate trains it";
  const Difference blocked = alone(c);
  CHECK((blocked.better == Side::none && blocked.lost == Side::none && !blocked.equal));
  CHECK((blocked.obstacle == "no rate trains it" && blocked.evidence > 20 && blocked.equality > 50));
  CHECK_THAT(describe(blocked, 1), contains("no rate trains it"));

  c.obstacle.clear(), c.resolution = 1.5;
  const Difference small = alone(c);
  CHECK((small.better == Side::none && small.lost == Side::none && small.equal));
  CHECK_THAT(small.obstacle, contains("below the resolution"));
  c.resolution = .5;
  CHECK(alone(c).better == Side::first);
  // The resolution of a value says nothing about failed seeds.
  c.resolution = 1.5, c.second.costs.assign(12, infinity);
  CHECK((alone(c).better == Side::first && alone(c).obstacle.empty()));

  Contrast other_length = lower_by_one();
  other_length.second.costs.pop_back();
  CHECK_THAT(error_of([&] { judge_family({other_length}); }), contains("expected outcomes at the same seeds"));
}

TEST_CASE("the weight of a comparison is its share of the level of the family") {
  Contrast c = lower_by_one(), null{.first = {.costs = twelve}, .second = {.costs = twelve}};
  c.second.at_this_rate = true;
  std::vector<Contrast> family(4, null);
  family.push_back(c);
  CHECK(judge_family(family).back().needs == Approx(5 / order_level));
  family.back().weight = 4;
  const std::vector<Difference> found = judge_family(family);
  CHECK(found.back().needs == Approx(8 / (order_level * 4)));
  // The others are judged without the share of the rejected comparison.
  CHECK((found.back().better == Side::first && found.front().needs == Approx(4 / order_level)));
  CHECK(found.front().family == 5);
}

TEST_CASE("a comparison with exchanged sides") {
  Contrast c = lower_by_one();
  c.second.neighbours = {{-1, plus(twelve_other, 1.3)}, {1, plus(twelve_other, 1.4)}};
  c.second.costs[3] = infinity, c.second.costs[5] = -2;
  const Difference d = alone(c), back = turned(d);
  std::swap(c.first, c.second);
  const Difference exchanged = alone(c);
  CHECK((d.better == Side::first && back.better == Side::second && back.lost == Side::first));
  CHECK((back.better == exchanged.better && back.lost == exchanged.lost && back.neighbours == exchanged.neighbours));
  CHECK((back.duel.wins == 1 && back.duel.losses == 11 && back.duel.failed_first == 1 && back.duel.failed_second == 0));
  CHECK((back.duel.first_ahead == exchanged.duel.first_ahead && back.duel.second_ahead == exchanged.duel.second_ahead));
  CHECK(back.duel.differences == exchanged.duel.differences);
  CHECK((back.median.value == exchanged.median.value && back.median.value == -d.median.value));
  CHECK((back.median.low == exchanged.median.low && back.median.high == exchanged.median.high));
  CHECK((back.evidence == d.evidence && back.at_all_rates == d.at_all_rates && back.needs == d.needs));
  const Difference again = turned(back);
  CHECK((again.better == d.better && again.duel.wins == d.duel.wins && again.duel.differences == d.duel.differences));
  CHECK(turned(Difference{}).better == Side::none);
}

TEST_CASE("verdicts in words") {
  Difference d;
  CHECK(verdict_words(d) == "no verdict");
  d.better = Side::first;
  CHECK(verdict_words(d) == "better");
  d.better = Side::second;
  CHECK(verdict_words(d) == "worse");
  d.within = .05, d.equal = true;
  CHECK_THAT(verdict_words(d), contains("worse") && contains("equal within 0.05"));
  d.better = Side::none;
  CHECK(verdict_words(d) == "equal within 0.05");
}

TEST_CASE("a median difference in words") {
  const Median median{.n = 12, .value = -.21, .low = -.25, .high = -.17};
  CHECK(effect_words(median, 1) == "lower by 0.21 (0.17 to 0.25)");
  CHECK(effect_words(median, -1) == "higher by 0.21 (0.17 to 0.25)");
  CHECK_THAT(effect_words({.n = 6, .value = .1, .low = -.02, .high = .3}, 1), contains("higher by 0.1 (-0.02 to 0.3)"));
  CHECK_THAT(effect_words({.n = 6, .value = -.1, .low = -.3, .high = .02}, 1), contains("lower by 0.1 (-0.02 to 0.3)"));
  CHECK(effect_words({.n = 3, .value = .5}, 1) == "higher by 0.5");
  CHECK_THAT(effect_words({.n = 3, .value = 0}, 1), contains("equal"));
  CHECK_THAT(effect_words({}, 1), contains("no seed trained with both"));
}

TEST_CASE("a comparison in words") {
  CHECK(describe(Difference{}, 1) == "no pairs");
  Contrast c = lower_by_one();
  CHECK_THAT(describe(alone(c), 1),
             contains("12:0, lower by ") && contains("; E = ") && contains("neighbours are not trained"));
  CHECK_THAT(describe(alone(c), -1), contains("12:0, higher by "));
  c.second.neighbours[-1] = plus(twelve_other, 1.3);
  c.second.beyond = {1};
  CHECK_THAT(describe(alone(c), 1),
             contains(", needs 20 in a family of 1; stands at its neighbours") && contains("beyond the bound"));
  c.second.neighbours[-1] = twelve;
  c.second.neighbours[-2] = plus(twelve_other, 1.3);
  CHECK_THAT(describe(alone(c), 1), contains("does not stand at its neighbours"));
  c.second.at_this_rate = true, c.equal_within = 2;
  CHECK_THAT(describe(alone(c), 1), contains("at this rate") && contains("equal within 2"));
  c.second.costs[2] = infinity, c.second.costs[4] = -infinity;
  const std::string failed = describe(alone(c), 1);
  CHECK_THAT(failed,
             contains("11:0 of 12 seeds") && contains("where both train") && contains("0 and 1 of 12 seeds failed"));
  c.second.costs.assign(12, infinity);
  CHECK_THAT(describe(alone(c), 1), contains("no seed trained with both") && contains("0 and 12 of 12 seeds failed"));
}

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t bits(const std::optional<double>& x) { return x ? bits(*x) : 0; }

// All that must depend on the trials of the two arms only.
std::vector<std::uint64_t> own_bits(const Difference& d) {
  const Duel& u = d.duel;
  std::vector<std::uint64_t> all;
  for (const std::int64_t n : {u.seeds, u.wins, u.losses, u.failed_first, u.failed_second, d.median.n})
    all.push_back(static_cast<std::uint64_t>(n));
  for (const double x : u.differences) all.push_back(bits(x));
  for (const double x :
       {u.evidence, u.first_ahead, u.second_ahead, d.median.value, d.evidence, d.at_all_rates, d.equality})
    all.push_back(bits(x));
  all.push_back(bits(d.median.low)), all.push_back(bits(d.median.high));
  return all;
}

Outcomes random_costs(std::mt19937_64& g) {
  Outcomes costs(10);
  for (double& y : costs) {
    y = std::round(10 * std::normal_distribution<double>()(g)) / 10;
    const auto kind = std::uniform_int_distribution<int>(0, 40)(g);
    if (kind < 4) y = kind == 0 ? not_a_number : kind == 1 ? -infinity : infinity;
  }
  return costs;
}

Arm random_arm(std::mt19937_64& g) {
  Arm arm{.costs = random_costs(g), .at_this_rate = g() % 2 == 0};
  for (const int step : {-2, -1, 1, 2})
    if (g() % 5 > 0) arm.neighbours[step] = random_costs(g);
  if (g() % 5 == 0) arm.beyond = {2};
  return arm;
}

}  // namespace

TEST_CASE("another arm or comparison changes no bit of the evidence of a comparison") {
  std::mt19937_64 g(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<Contrast> family;
    const Arm control = random_arm(g);
    for (int k = 0; k < 6; ++k) {
      Contrast& c = family.emplace_back(Contrast{.first = random_arm(g), .second = control, .equal_within = 1});
      c.weight = 1 + static_cast<double>(g() % 3);
      for (double& y : c.first.costs) y -= static_cast<double>(k) / 2;
    }
    const std::vector<Difference> all = judge_family(family);
    for (std::size_t left_out = 0; left_out < family.size(); ++left_out) {
      std::vector<Contrast> others = family;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
      const std::vector<Difference> without = judge_family(others);
      for (std::size_t k = 0; k < family.size(); ++k)
        if (k != left_out && own_bits(all[k]) != own_bits(without[k < left_out ? k : k - 1]))
          FAIL("comparison " << k << " depends on comparison " << left_out);
    }
  }
}

TEST_CASE("a median has an interval from the sign test") {
  CHECK(median_of({}).n == 0);
  CHECK(std::isnan(median_of({}).value));
  const Median five = median_of({5, 1, 4, 2, 3});
  CHECK((five.n == 5 && five.value == 3 && !five.low && !five.high));
  const Median six = median_of({6, 5, 1, 4, 2, 3});
  CHECK((six.n == 6 && six.value == 3.5 && six.low == 1 && six.high == 6));
  const Median ten = median_of({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK((ten.value == 5.5 && ten.low == 2 && ten.high == 9));
  const Median infinite = median_of({1, 2, infinity, infinity, infinity, infinity, infinity});
  CHECK((infinite.value == infinity && infinite.low == 1 && infinite.high == infinity));
}

TEST_CASE("the interval of a median is the shortest one that covers it with 95 %") {
  CHECK((interval_rank(0) == 0 && interval_rank(1) == 0 && interval_rank(5) == 0));
  CHECK((interval_rank(6) == 1 && interval_rank(8) == 1 && interval_rank(9) == 2 && interval_rank(10) == 2));
  CHECK(interval_rank(20) == 6);
  for (int n = 6; n <= 200; ++n) {
    const auto coverage = [&](std::size_t rank) {
      double below = 0;
      for (int k = 0; k < static_cast<int>(rank); ++k) below += std::exp(std::log(binomial(n, k)) - n * std::log(2));
      return 1 - 2 * below;
    };
    const std::size_t rank = interval_rank(static_cast<std::size_t>(n));
    INFO(n << " values, rank " << rank);
    CHECK(coverage(rank) >= .95);
    CHECK(coverage(rank + 1) < .95);
  }
}
