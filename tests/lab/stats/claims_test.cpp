#include "experiments/lab/stats/claims.h"

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;

namespace {

Record trial(double epsilon, std::int64_t depth, std::int64_t seed, double loss, Status status = Status::ok) {
  return {
      .point = {{"depth", depth}, {"epsilon", epsilon}, {"seed", seed}}, .status = status, .values = {{"loss", loss}}};
}

const Comparison comparison = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}});

}  // namespace

TEST_CASE("a claim is judged pair by pair") {
  // The losses differ much more between seeds than between the two values of epsilon.
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 4; ++seed) {
    trials.push_back(trial(0, 6, seed, 10.0 * static_cast<double>(seed)));
    trials.push_back(trial(0.1, 6, seed, 10.0 * static_cast<double>(seed) - 1 - 0.1 * static_cast<double>(seed)));
  }
  const ClaimResult agree = judge(comparison, trials);
  CHECK(agree.verdict == Verdict::agree);
  CHECK(agree.difference.mean == Approx(-1.15));
  CHECK(agree.difference.n == 4);
  const ClaimResult disagree = judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}}), trials);
  CHECK(disagree.verdict == Verdict::disagree);
  CHECK(judge(comparison.at({{"depth", 12}}), trials).verdict == Verdict::undecided);
  CHECK(judge(comparison.at({{"depth", 12}}), trials).difference.n == 0);
  trials[1].values[0].second = 30;
  CHECK(judge(comparison, trials).verdict == Verdict::undecided);
}

TEST_CASE("one pair decides no claim and divergence decides only in enough pairs") {
  const ClaimResult one = judge(comparison, {trial(0, 6, 0, 2), trial(0.1, 6, 0, 1)});
  CHECK(one.verdict == Verdict::undecided);
  CHECK(one.difference.n == 1);
  CHECK(one.difference.mean == Approx(-1));
  // Trials with different seeds form no pair.
  CHECK(judge(comparison, {trial(0, 6, 0, 2), trial(0.1, 6, 1, 1)}).difference.n == 0);
  const auto pairs = [](int n, Status at_zero, Status at_tenth) {
    std::vector<Record> trials;
    for (int seed = 0; seed < n; ++seed) {
      trials.push_back(trial(0, 6, seed, 2, at_zero));
      trials.push_back(trial(0.1, 6, seed, 1, at_tenth));
    }
    return trials;
  };
  CHECK(judge(comparison, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(comparison, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  CHECK(judge(comparison, pairs(5, Status::diverged, Status::ok)).verdict == Verdict::undecided);
  CHECK(pairs_needed(judge(comparison, pairs(5, Status::diverged, Status::ok)).judged) == 6);
  // A diverged trial is worse even if a higher value is claimed.
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(up, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(up, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  // A failed trial forms no pair. If one pair has a divergence and five pairs are better, the claim is undecided.
  CHECK(judge(comparison, pairs(6, Status::failed, Status::ok)).verdict == Verdict::undecided);
  std::vector<Record> against = pairs(6, Status::ok, Status::ok);
  against[1].status = Status::diverged;
  CHECK(judge(comparison, against).verdict == Verdict::undecided);
}

TEST_CASE("claims.csv has the numbers of each verdict with the sign of the measured values") {
  std::vector<Record> trials;
  for (int seed = 0; seed < 3; ++seed) {
    trials.push_back(trial(0, 6, seed, 1 + 0.1 * seed));
    trials.push_back(trial(0.1, 6, seed, 2 + 0.11 * seed));
  }
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  const std::string csv =
      claims_csv({{"more, is better", "a paper", judge(up, trials)}, {"less is", "none", judge(comparison, {})}});
  CHECK_THAT(
      csv,
      contains(
          "claim,source,verdict,difference,low,high,margin,n,needed\n\"more, is better\",a paper,agree,1.01,0.98") &&
          contains(",,3,3\n") && contains("\nless is,none,undecided,,,,,0,\n"));
}

TEST_CASE("values on axes that a claim does not name are averaged within a seed") {
  std::vector<Record> trials;
  for (const std::int64_t depth : {6, 12, 24})
    for (const double epsilon : {0.0, 0.1})
      trials.push_back(trial(epsilon, depth, 0, (epsilon > 0 ? 1 : 2) + 0.01 * static_cast<double>(depth)));
  const Comparison open = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(open, trials).difference.n == 1);
  CHECK(judge(open, trials).difference.mean == Approx(-1));
  trials.push_back(trial(0.1, 24, 1, 1, Status::diverged));
  trials.push_back(trial(0, 24, 1, 1));
  CHECK(judge(open, trials).difference.diverged_first == 1);
}

TEST_CASE("a claim with a margin needs the whole interval within the margin") {
  // The difference is 0.02 higher, with an interval of about ± 0.011.
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    trials.push_back(trial(0, 6, seed, 3.0 + static_cast<double>(seed)));
    trials.push_back(trial(0.1, 6, seed, 3.02 + static_cast<double>(seed) + (seed % 2 ? 0.009 : -0.006)));
  }
  const auto within = [&](double margin) {
    return judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, margin), trials);
  };
  CHECK(within(0.1).verdict == Verdict::agree);
  CHECK(within(0.02).verdict == Verdict::undecided);
  CHECK(within(0.005).verdict == Verdict::disagree);
  CHECK(within(0.02).difference.mean == Approx(0.02));
  CHECK(within(0.02).difference.n == 5);
  CHECK(pairs_needed(within(0.025).judged) > 5);
  const auto not_less = [&](double margin) {
    return judge(not_lower("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}}, margin), trials);
  };
  CHECK(not_less(0.1).verdict == Verdict::agree);
  CHECK(not_less(0.005).verdict == Verdict::disagree);
  CHECK_THAT(claims_csv({{"as good", "none", not_less(0.1)}}),
             contains("as good,none,agree,-0.0") && contains(",-0.1,5,5\n"));
  // Two pairs have no interval. A diverged trial is worse than a trial that did not diverge, for every margin.
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 10), {trials.begin(), trials.begin() + 4})
            .verdict == Verdict::undecided);
  std::vector<Record> lost;
  for (int seed = 0; seed < 6; ++seed)
    lost.push_back(trial(0, 6, seed, 2)), lost.push_back(trial(0.1, 6, seed, 1, Status::diverged));
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 10), lost).verdict == Verdict::disagree);
  // In one pair the second trial diverged. In nine pairs the first trial is worse by less than the margin. So all ten
  // pairs agree with the claim.
  std::vector<Record> close;
  for (int seed = 0; seed < 10; ++seed)
    close.push_back(trial(0, 6, seed, 2, seed == 0 ? Status::diverged : Status::ok)),
        close.push_back(trial(0.1, 6, seed, 2.001));
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 0.1), close).verdict == Verdict::agree);
  CHECK(judge(lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}), close).verdict == Verdict::disagree);
  CHECK_THROWS_WITH(not_higher("loss", {}, {}, 0), contains("expected a margin above 0 for loss, got 0"));
}

TEST_CASE("a claim of at least an amount needs the whole interval beyond the amount") {
  // The difference is 0.02 lower, with an interval of about ± 0.011.
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    trials.push_back(trial(0, 6, seed, 3.02 + static_cast<double>(seed) + (seed % 2 ? 0.009 : -0.006)));
    trials.push_back(trial(0.1, 6, seed, 3.0 + static_cast<double>(seed)));
  }
  const Comparison plain = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}),
                   up = higher("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}});
  CHECK(judge(plain, trials).verdict == Verdict::agree);
  for (const Comparison& c : {plain, up}) {
    CHECK(judge(c.by_at_least(0.005), trials).verdict == Verdict::agree);
    CHECK(judge(c.by_at_least(0.02), trials).verdict == Verdict::undecided);
    CHECK(judge(c.by_at_least(0.1), trials).verdict == Verdict::disagree);  // the value is lower, but by too little
  }
  CHECK_THAT(claims_csv({{"down", "none", judge(plain.by_at_least(0.005), trials)}}),
             contains("down,none,agree,-0.0") && contains(",-0.005,5,5\n"));
  CHECK_THAT(claims_csv({{"up", "none", judge(up.by_at_least(0.005), trials)}}),
             contains("up,none,agree,0.0") && contains(",0.005,5,5\n"));
  CHECK(judge(plain.by_at_least(0.005).at({{"depth", 12}}), trials).verdict == Verdict::undecided);
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    CHECK_THROWS_WITH(plain.by_at_least(wrong), contains("expected by_at_least() of an amount above 0 for loss"));
  CHECK_THROWS_WITH(above("loss", 1, {}).by_at_least(1), contains("got it of above() or below()"));
  CHECK_THROWS_WITH(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 1).by_at_least(1),
                    contains("a comparison with a margin"));
}

TEST_CASE("a claim compares a value with a constant") {
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 4; ++seed)
    trials.push_back(trial(0.1, 6, seed, 3.0 + 0.1 * static_cast<double>(seed))),
        trials.push_back(trial(0, 6, seed, 0));
  CHECK(judge(above("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::agree);
  CHECK(judge(below("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::disagree);
  CHECK(judge(above("loss", 3.1, {{"epsilon", 0.1}}), trials).verdict == Verdict::undecided);
  CHECK(judge(below("loss", 9, {{"epsilon", 0.1}, {"depth", 7}}), trials).verdict ==
        Verdict::undecided);  // no trial has depth 7
  const ClaimResult result = judge(above("loss", 1, {{"epsilon", 0.1}}), trials);
  CHECK(result.difference.n == 4);
  CHECK(result.constant == 1);
}

TEST_CASE("the reason of a claim's verdict in words") {
  const std::vector<Record> one{trial(0, 6, 0, 2), trial(0.1, 6, 0, 1)};
  CHECK_THAT(judge(comparison, {}).why(), contains("no pairs"));
  CHECK_THAT(judge(comparison, one).why(), contains("lower by 1 in one pair"));
  std::vector<Record> five, diverged;
  for (std::int64_t seed = 0; seed < 5; ++seed) {
    const double common = 3.0 + static_cast<double>(seed);
    five.push_back(trial(0, 6, seed, common + 0.02 + (seed % 2 ? 0.009 : -0.006)));
    five.push_back(trial(0.1, 6, seed, common));
    diverged.push_back(trial(0, 6, seed, 2, Status::diverged));
    diverged.push_back(trial(0.1, 6, seed, 1));
  }
  const Comparison up = higher("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}});
  CHECK_THAT(judge(comparison, five).why(), contains("lower by 0.02, 95 % interval ") && contains(" 5 pairs"));
  CHECK_THAT(judge(comparison, diverged).why(), contains("; about 6 pairs would decide"));
  CHECK_THAT(judge(not_higher("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}}, 0.02), five).why(),
             contains("higher by 0.02") && contains("5 pairs; margin 0.02 higher"));
  CHECK_THAT(judge(not_lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 0.1), five).why(),
             contains("lower by 0.02") && contains("margin 0.1 lower"));
  CHECK_THAT(judge(comparison.by_at_least(0.02), five).why(), contains("5 pairs; claimed at least 0.02 lower"));
  CHECK_THAT(judge(up.by_at_least(0.02), five).why(), contains("5 pairs; claimed at least 0.02 higher"));
  CHECK_THAT(judge(above("loss", 1, {{"epsilon", 0}}), five).why(), contains("5 pairs with 1"));
}
