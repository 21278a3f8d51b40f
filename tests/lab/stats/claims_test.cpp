#include "experiments/lab/stats/claims.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <tuple>

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;

namespace {

TrialResult epsilon_trial(double epsilon, std::int64_t depth, std::int64_t seed, double loss,
                          Status status = Status::ok) {
  return {
      .point = {{"depth", depth}, {"epsilon", epsilon}, {"seed", seed}}, .status = status, .values = {{"loss", loss}}};
}

const Comparison any_depth = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}),
                 comparison = any_depth.at({{"depth", 6}});

// The only claim of a study.
JudgedClaim claim_of(const Comparison& c, const std::vector<TrialResult>& trials, const Judging& how = {}) {
  return judge_claims({{"a claim", "a paper", c}}, trials, how).at(0);
}
// The result of the claim at the only place that the trials have.
ClaimResult judge(const Comparison& c, const std::vector<TrialResult>& trials, const Judging& how = {}) {
  const JudgedClaim claim = claim_of(c, trials, how);
  REQUIRE(claim.results.size() == 1);
  return claim.results[0];
}

// Trials at 0 and 0.1 whose difference is `difference`, with a small variation between seeds.
std::vector<TrialResult> apart(double difference, std::int64_t seeds = 6, std::int64_t depth = 6) {
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    const double common = 3.0 + static_cast<double>(seed);
    trials.push_back(epsilon_trial(0, depth, seed, common));
    trials.push_back(epsilon_trial(0.1, depth, seed, common + difference + 0.004 * static_cast<double>(seed % 3 - 1)));
  }
  return trials;
}

}  // namespace

TEST_CASE("a claim is judged pair by pair") {
  // The losses differ much more between seeds than between the two values of epsilon.
  std::vector<TrialResult> trials = apart(-0.1);
  const ClaimResult agree = judge(comparison, trials);
  CHECK(agree.verdict == Verdict::agree);
  CHECK(agree.difference.mean == Approx(-0.1));
  CHECK(agree.difference.n == 6);
  CHECK(judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}), trials).verdict == Verdict::disagree);
  CHECK(claim_of(comparison.at({{"depth", 12}}), trials).results.empty());
  CHECK(claim_of(comparison.at({{"depth", 12}}), trials).verdict == Verdict::undecided);
  trials[1].values[0].second = 30;
  CHECK(judge(comparison, trials).verdict == Verdict::undecided);
}

TEST_CASE("one pair decides no claim and failures decide only at six seeds") {
  const ClaimResult one = judge(comparison, {epsilon_trial(0, 6, 0, 2), epsilon_trial(0.1, 6, 0, 1)});
  CHECK(one.verdict == Verdict::undecided);
  CHECK(one.difference.n == 1);
  CHECK(one.difference.mean == Approx(-1));
  // Trials with different seeds form no pair.
  CHECK(judge(comparison, {epsilon_trial(0, 6, 0, 2), epsilon_trial(0.1, 6, 1, 1)}).difference.n == 0);
  const auto pairs = [](int n, Status at_zero, Status at_tenth) {
    std::vector<TrialResult> trials;
    for (int seed = 0; seed < n; ++seed) {
      trials.push_back(epsilon_trial(0, 6, seed, 2, at_zero));
      trials.push_back(epsilon_trial(0.1, 6, seed, 1, at_tenth));
    }
    return trials;
  };
  CHECK(judge(comparison, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(comparison, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  CHECK(judge(comparison, pairs(5, Status::diverged, Status::ok)).verdict == Verdict::undecided);
  // A diverged trial is worse even if a higher value is claimed.
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(up, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(up, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  // A trial that failed with an error forms no pair.
  CHECK(judge(comparison, pairs(6, Status::failed, Status::ok)).verdict == Verdict::undecided);
  // A verdict on losses concerns the seeds at which both trained.
  std::vector<TrialResult> some = apart(-0.1, 7);
  some[1].status = Status::diverged;
  CHECK(judge(comparison, some).verdict == Verdict::agree);
  CHECK_THAT(judge(comparison, some).why(),
             contains("where both train") && contains("6 of 7 and 7 of 7 seeds trained"));
}

TEST_CASE("trials near chance count as failures for every value of a claim") {
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < 7; ++seed)
    for (const double epsilon : {0.0, 0.1}) {
      trials.push_back(epsilon_trial(epsilon, 6, seed, 0.5));
      trials.back().values = {{"train_loss", epsilon > 0 || seed > 0 ? 0.5 : 2.3}, {"val_accuracy", 0.9}};
    }
  const ClaimResult found =
      judge(higher("val_accuracy", {{"epsilon", 0.1}}, {{"epsilon", 0}}), trials, {.chance = chance_of_classes(10)});
  CHECK((found.difference.trained_first == 7 && found.difference.trained_second == 6 && found.difference.trained == 6));
}

TEST_CASE("a claim and its reverse have the same verdict, also on losses whose spreads differ") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  int decided = 0, spread = 0;
  for (int study = 0; study < 200; ++study) {
    // Four methods; the losses of the first vary little, and those of the second more, around up to three times the
    // loss.
    std::vector<TrialResult> trials;
    for (std::int64_t seed = 0; seed < 6; ++seed)
      for (const auto& [epsilon, median, deviation] :
           {std::tuple(0.0, 1.0, 0.01), {0.1, 1 + study / 100.0, 0.25}, {0.2, 1.2, 0.03}, {0.3, 1.3, 0.03}})
        trials.push_back(epsilon_trial(epsilon, 6, seed, median * std::exp(deviation * normal(random))));
    const Point small{{"epsilon", 0.0}}, large{{"epsilon", 0.1}};
    const ClaimResult lower_first = judge(lower("loss", small, large), trials),
                      higher_second = judge(higher("loss", large, small), trials),
                      wrong = judge(higher("loss", small, large), trials);
    INFO(lower_first.why() << "\n" << higher_second.why());
    CHECK(lower_first.verdict == higher_second.verdict);
    CHECK(lower_first.judged.doubt == higher_second.judged.doubt);
    CHECK((wrong.verdict == Verdict::disagree) == (lower_first.verdict == Verdict::agree));
    decided += lower_first.verdict == Verdict::agree;
    spread += lower_first.judged.doubt == Difference::Doubt::spread;
  }
  CHECK(decided > 50);  // far apart: the ratio of the losses is more than outliers explain
  CHECK(spread > 0);
  // The ratio of accuracies says nothing about outliers, in either direction.
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < 6; ++seed)
    for (const auto& [epsilon, median, deviation] :
         {std::tuple(0.0, 0.3, 0.003), {0.1, 0.6, 0.04}, {0.2, 0.4, 0.02}, {0.3, 0.5, 0.02}})
      trials.push_back(epsilon_trial(epsilon, 6, seed, median + deviation * normal(random)));
  const Judging accuracies{.measures = {{.name = "loss", .title = "loss", .better = Better::higher}}};
  CHECK(judge(lower("loss", {{"epsilon", 0.0}}, {{"epsilon", 0.1}}), trials, accuracies).verdict ==
        judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0.0}}), trials, accuracies).verdict);
}

TEST_CASE("a claim is judged at each value of an axis that it does not name") {
  std::vector<TrialResult> trials = apart(-0.1, 6, 6);
  std::ranges::copy(apart(-0.2, 6, 24), std::back_inserter(trials));
  const JudgedClaim both = claim_of(any_depth, trials);
  REQUIRE(both.results.size() == 2);
  CHECK(both.verdict == Verdict::agree);
  CHECK(both.results[1].difference.mean == Approx(-0.2));
  CHECK_THAT(both.why(), contains("depth 6: agree, lower by 0.1") && contains("; depth 24: agree, lower by 0.2"));
  // One undecided place does not change the verdict. Two opposite places do.
  std::vector<TrialResult> tie = apart(-0.1, 6, 6);
  std::ranges::copy(apart(0, 6, 24), std::back_inserter(tie));
  CHECK(claim_of(any_depth, tie).verdict == Verdict::agree);
  std::vector<TrialResult> opposite = apart(-0.1, 6, 6);
  std::ranges::copy(apart(0.2, 6, 24), std::back_inserter(opposite));
  const JudgedClaim depends = claim_of(any_depth, opposite);
  CHECK(depends.verdict == Verdict::depends);
  CHECK(depends.verdict_words() == "depends on depth");
  CHECK_THAT(depends.why(), contains("depth 6: agree, lower by 0.1") && contains("depth 24: disagree, higher by 0.2"));
}

TEST_CASE("a verdict that turns with the learning rate depends on the learning rate") {
  std::vector<TrialResult> trials;
  for (const double lr : {1e-3, 1e-2})
    for (TrialResult t : apart(lr > 2e-3 ? -0.3 : 0.02)) {
      t.point.set("lr", lr);
      trials.push_back(t);
    }
  const JudgedClaim claim = claim_of(comparison, trials);
  CHECK(claim.verdict_words() == "depends on lr");
  CHECK_THAT(claim.why(), contains("lr 0.001: disagree, higher by 0.02") && contains("lr 0.01: agree, lower by 0.3") &&
                              !contains("at lr"));  // the place names the rate
  CHECK_THAT(claims_csv({claim}), contains(",lr 0.001,depends,no,") && contains(",lr 0.01,depends,no,") &&
                                      Catch::Matchers::EndsWith(",0.01,0.01\n"));
  // If each method has its own rate, the rate is no place.
  std::vector<TrialResult> own = apart(-0.1);
  for (TrialResult& t : own) t.point.set("lr", t.point.get<double>("epsilon") > 0 ? 1e-3 : 1e-2);
  CHECK(claim_of(comparison, own, {.own_rates = true}).verdict == Verdict::agree);
  CHECK(claim_of(comparison, own).results.empty());
}

TEST_CASE("the verdict on a claim names the learning rates of both sides") {
  using Catch::Matchers::EndsWith;
  // Each method has its own rate, or all have one, which is an axis or a setting of the study.
  std::vector<TrialResult> trials = apart(-0.1);
  for (TrialResult& t : trials) t.point.set("lr", t.point.get<double>("epsilon") > 0 ? 1e-3 : 1e-2);
  const JudgedClaim own = claim_of(comparison, trials, {.own_rates = true});
  CHECK_THAT(own.why(), EndsWith("; at lr 0.001 against lr 0.01"));
  CHECK_THAT(claims_csv({own}), EndsWith(",0.001,0.01\n"));
  for (TrialResult& t : trials) t.point.set("lr", 0.002);
  CHECK_THAT(claim_of(comparison, trials).why(), EndsWith("; at lr 0.002"));
  CHECK_THAT(claim_of(comparison, apart(-0.1), {.rate = 0.003}).why(), EndsWith("; at lr 0.003"));
  CHECK(claim_of(comparison, apart(-0.1)).results[0].at_rates().empty());
  // A constant has no rate.
  const JudgedClaim constant = claim_of(below("loss", 1, {{"epsilon", 0}}), apart(-0.1), {.rate = 0.003});
  CHECK_THAT(constant.why(), EndsWith("; at lr 0.003"));
  CHECK_THAT(claims_csv({constant}), EndsWith(",0.003,\n"));
  // Each of several places ends with the rates.
  trials = apart(-0.1);
  for (TrialResult& t : apart(-0.1)) {
    trials.push_back(t);
    trials.back().point.set("depth", 24);
  }
  CHECK_THAT(claim_of(any_depth, trials, {.rate = 0.003}).why(),
             contains("; at lr 0.003; depth 24: ") && EndsWith("; at lr 0.003"));
  // Trials of one series have one rate.
  for (TrialResult& t : trials) t.point.set("lr", 0.001 * static_cast<double>(1 + t.seed()));
  CHECK_THAT(test::error_of([&] { claim_of(any_depth, trials, {.own_rates = true}); }),
             contains("have the learning rates"));
}

TEST_CASE("the claims of a study are one family and borrow their variance from the whole section") {
  const std::vector<TrialResult> trials = apart(-0.1);
  const auto level_of = [&](std::size_t claims) {
    return judge_claims(std::vector<Claim>(claims, {"a", "b", comparison}), trials, {}).back().results[0].judged.level;
  };
  CHECK(level_of(1) == Approx(0.025));
  // Holm's procedure judges the last of four equal claims at the whole level, after the others are decided.
  const std::vector<JudgedClaim> four = judge_claims(std::vector<Claim>(4, {"a", "b", comparison}), trials, {});
  CHECK(std::ranges::min(four, {}, [](const JudgedClaim& c) { return c.results[0].judged.level; })
            .results[0]
            .judged.level == Approx(0.025 / 4));
  CHECK_THAT(about_claims(four, {}),
             contains("4 comparisons of claims are one family. If nothing differs, the chance of "
                      "any wrong verdict is at most about 5 %"));
  CHECK_THAT(about_claims(four, {.look = 2}),
             contains("at most about 1.25 %") && contains("This is look 2: seeds were added after 1 earlier look,"));
  CHECK(about_claims({}, {}).empty());
  // Three seeds decide nothing between two series, but do in a section of four series.
  std::vector<TrialResult> three = apart(-0.1, 3);
  CHECK(judge(comparison, three).verdict == Verdict::undecided);
  for (const TrialResult& t : apart(0.5, 3)) {
    three.push_back(t);
    three.back().point.set("epsilon", 1 + t.point.get<double>("epsilon"));
    three.back().values[0].second += 0.003 * static_cast<double>(t.seed() == 2);
  }
  CHECK(judge(comparison, three).verdict == Verdict::agree);
}

TEST_CASE("a claim that was added after the folder was made is post hoc") {
  const std::vector<TrialResult> trials = apart(-0.1);
  CHECK_FALSE(claim_of(comparison, trials).post_hoc);
  CHECK_FALSE(claim_of(comparison, trials, {.planned_claims = {{"a claim"}}}).post_hoc);
  const JudgedClaim late = claim_of(comparison, trials, {.planned_claims = {{"another"}}});
  CHECK(late.post_hoc);
  CHECK(late.verdict_words() == "agree (post hoc)");
}

TEST_CASE("claims.csv has the numbers of each verdict with the sign of the measured values") {
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  const std::string csv = claims_csv(judge_claims(
      {{"more, is better", "a paper", up}, {"less is", "none", comparison.at({{"depth", 7}})}}, apart(0.5), {}));
  CHECK_THAT(csv,
             contains("claim,source,verdict,difference,low,high,margin,n,needed,at,overall,post_hoc,level,"
                      "trained_first,trained_second,lr_first,lr_second\n\"more, is better\",a paper,agree,0.49999") &&
                 contains(",,6,6,depth 6,agree,no,0.025,6,6,,\n") && contains("\nless is,none,undecided,,,,,0,"));
}

TEST_CASE("a claim with a margin needs the whole interval within the margin and six trained seeds") {
  // The difference is 0.02 higher, and the losses of the control vary by about 1.9 between seeds.
  const std::vector<TrialResult> trials = apart(0.02);
  const auto within = [&](double margin) {
    return judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, margin), trials);
  };
  CHECK(within(0.1).verdict == Verdict::agree);
  CHECK(within(0.02).verdict == Verdict::undecided);
  CHECK(within(0.005).verdict == Verdict::disagree);
  CHECK(within(0.02).difference.mean == Approx(0.02));
  CHECK(within(0.1).difference.mean == Approx(0.02));
  const auto not_less = [&](double margin) {
    return judge(not_lower("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}}, margin), trials);
  };
  CHECK(not_less(0.1).verdict == Verdict::agree);
  CHECK(not_less(0.005).verdict == Verdict::disagree);
  // Five seeds, or a seed that did not train, are not enough.
  const Comparison as_good = not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 0.1);
  CHECK(judge(as_good, apart(0.02, 5)).verdict == Verdict::undecided);
  std::vector<TrialResult> lost = apart(0.02, 8);
  lost[0].status = Status::diverged;
  CHECK(judge(as_good, lost).verdict == Verdict::undecided);
  CHECK_THAT(judge(as_good, lost).why(), contains("a margin needs six seeds, all of them trained on both sides"));
  // A method that trains less often is not as good.
  std::vector<TrialResult> never = apart(0.02);
  for (TrialResult& t : never)
    if (t.point.get<double>("epsilon") > 0) t.status = Status::diverged;
  CHECK(judge(as_good, never).verdict == Verdict::disagree);
  CHECK_THROWS_WITH(not_higher("loss", {}, {}, 0), contains("expected a margin above 0 for loss, got 0"));
}

TEST_CASE("a margin within which a placebo is in nine of ten studies is too wide") {
  // Trials of the control with different seeds differ by about 0.01.
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < 6; ++seed) {
    trials.push_back(epsilon_trial(0, 6, seed, 0.5 + 0.004 * static_cast<double>(seed)));
    trials.push_back(epsilon_trial(0.1, 6, seed, 0.5 + 0.004 * static_cast<double>((seed * 5) % 6)));
  }
  const auto within = [&](double margin) {
    return judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, margin), trials);
  };
  CHECK(within(0.025).verdict == Verdict::agree);
  // The deviation of 0, 0.004, .. 0.02 is 0.00748; a difference of two draws has 1.41 times as much.
  CHECK_THAT(within(0.025).why(), contains("; margin 0.025 higher (placebo: two draws of the control differ by about "
                                           "0.011)"));
  CHECK(within(0.03).verdict == Verdict::undecided);
  CHECK_THAT(within(0.03).why(), contains("the margin is too wide: the control against itself under other draws"));
}

TEST_CASE("a placebo of six seeds is within the widest margin in nine of ten studies and often misses half of it") {
  // The share of studies in which the control is as good as itself under other draws.
  const auto agrees = [](double margin) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise;
    int found = 0;
    constexpr int studies = 4000;
    for (int study = 0; study < studies; ++study) {
      std::vector<Outcomes> section(4, Outcomes(6));
      for (Outcomes& series : section)
        for (double& outcome : series) outcome = noise(random);
      const std::vector<Contrast> placebo{{.first = section[0],
                                           .second = section[1],
                                           .section = Variances(section),
                                           .margin = margin * std::numbers::sqrt2}};
      found += judge_family(placebo).front().order == Difference::Order::lower;
    }
    return static_cast<double>(found) / studies;
  };
  CHECK(agrees(2.5) > 0.9);
  CHECK(agrees(1.25) < 0.6);
}

TEST_CASE("a difference of accuracies below two images decides nothing") {
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < 6; ++seed)
    for (const double epsilon : {0.0, 0.1}) {
      trials.push_back(epsilon_trial(epsilon, 6, seed, 0));
      const double images = epsilon > 0 ? 9002 + static_cast<double>(seed % 2) : 9001 + static_cast<double>(seed % 2);
      trials.back().values = {{"val_accuracy", (images + (seed == 3 ? 0.2 * epsilon : 0)) / 10000}};
    }
  const Comparison better = higher("val_accuracy", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(better, trials).verdict == Verdict::agree);
  CHECK(judge(better, trials, {.measures = measures_of_classification(10, 10000)}).verdict == Verdict::undecided);
  CHECK_THAT(judge(better, trials, {.measures = measures_of_classification(10, 10000)}).why(),
             contains("below the resolution of the measure"));
}

TEST_CASE("a claim of at least an amount needs the whole interval beyond the amount") {
  const std::vector<TrialResult> trials = apart(-0.02);
  const Comparison up = higher("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}});
  CHECK(judge(comparison, trials).verdict == Verdict::agree);
  for (const Comparison& c : {comparison, up}) {
    CHECK(judge(c.by_at_least(0.005), trials).verdict == Verdict::agree);
    CHECK(judge(c.by_at_least(0.02), trials).verdict == Verdict::undecided);
    CHECK(judge(c.by_at_least(0.1), trials).verdict == Verdict::disagree);  // the value is lower, but by too little
  }
  CHECK_THAT(claims_csv({claim_of(comparison.by_at_least(0.005), trials)}), contains(",-0.005,6,6,"));
  CHECK_THAT(claims_csv({claim_of(up.by_at_least(0.005), trials)}), contains(",0.005,6,6,"));
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    CHECK_THROWS_WITH(comparison.by_at_least(wrong), contains("expected by_at_least() of an amount above 0 for loss"));
  CHECK_THROWS_WITH(above("loss", 1, {}).by_at_least(1), contains("got it of above() or below()"));
  CHECK_THROWS_WITH(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 1).by_at_least(1),
                    contains("a comparison with a margin"));
}

TEST_CASE("a claim compares a value with a constant") {
  std::vector<TrialResult> trials;
  for (std::int64_t seed = 0; seed < 6; ++seed)
    trials.push_back(epsilon_trial(0.1, 6, seed, 3.0 + 0.1 * static_cast<double>(seed))),
        trials.push_back(epsilon_trial(0, 6, seed, 0));
  CHECK(judge(above("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::agree);
  CHECK(judge(below("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::disagree);
  CHECK(judge(above("loss", 3.2, {{"epsilon", 0.1}}), trials).verdict == Verdict::undecided);
  CHECK(claim_of(below("loss", 9, {{"epsilon", 0.1}, {"depth", 7}}), trials).results.empty());
  const ClaimResult result = judge(above("loss", 1, {{"epsilon", 0.1}}), trials);
  CHECK(result.difference.n == 6);
  trials.resize(10);  // five seeds
  CHECK(judge(above("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::undecided);
  CHECK_THAT(result.why(), contains("; compared with 1"));
}

TEST_CASE("the reason of a claim's verdict in words") {
  const std::vector<TrialResult> one{epsilon_trial(0, 6, 0, 2), epsilon_trial(0.1, 6, 0, 1)}, six = apart(-0.02);
  CHECK(claim_of(comparison, {}).why() == "no pairs");
  CHECK_THAT(judge(comparison, one).why(), contains("lower by 1 in one pair"));
  CHECK_THAT(judge(comparison, six).why(), contains("lower by 0.02, 97.5 % interval ") && contains(" 6 pairs; 6 of 6"));
  CHECK_THAT(judge(comparison, apart(-0.002)).why(), contains("pairs would decide"));
  CHECK_THAT(judge(not_higher("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}}, 0.02), six).why(),
             contains("higher by 0.02") && contains("; margin 0.02 higher"));
  CHECK_THAT(judge(not_lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 0.1), six).why(),
             contains("lower by 0.02") && contains("margin 0.1 lower"));
  CHECK_THAT(judge(comparison.by_at_least(0.02), six).why(), contains("; claimed at least 0.02 lower"));
}
