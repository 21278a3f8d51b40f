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
  // Seeds differ far more than the two values do.
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 4; ++seed) {
    trials.push_back(trial(0, 6, seed, 10.0 * static_cast<double>(seed)));
    trials.push_back(trial(0.1, 6, seed, 10.0 * static_cast<double>(seed) - 1 - 0.1 * static_cast<double>(seed)));
  }
  const ClaimResult agree = judge(comparison, trials);
  CHECK(agree.verdict == Verdict::agree);
  CHECK_THAT(agree.why(), contains("lower by 1.15, 95 % interval ") && contains(" 4 pairs"));
  const ClaimResult disagree = judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}}), trials);
  CHECK(disagree.verdict == Verdict::disagree);
  CHECK(judge(comparison.at({{"depth", 12}}), trials).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison.at({{"depth", 12}}), trials).why(), contains("no pairs"));
  trials[1].values[0].second = 30;
  CHECK(judge(comparison, trials).verdict == Verdict::undecided);
}

TEST_CASE("a claim needs pairs: one is none, and divergence decides only where enough say the same") {
  CHECK(judge(comparison, {trial(0, 6, 0, 2), trial(0.1, 6, 0, 1)}).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison, {trial(0, 6, 0, 2), trial(0.1, 6, 0, 1)}).why(), contains("lower by 1 in one pair"));
  CHECK(judge(comparison, {trial(0, 6, 0, 2), trial(0.1, 6, 1, 1)}).verdict ==
        Verdict::undecided);  // of different seeds
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
  CHECK_THAT(judge(comparison, pairs(5, Status::diverged, Status::ok)).why(), contains("; about 6 pairs would decide"));
  // The one that diverged is the worse, whichever way is better.
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(up, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(up, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  CHECK_THAT(judge(up, {trial(0, 6, 0, 1), trial(0.1, 6, 0, 2), trial(0, 6, 1, 1), trial(0.1, 6, 1, 2.01)}).why(),
             contains("higher by 1"));
  // A failed trial is no pair; one that diverged against the others leaves it open.
  CHECK(judge(comparison, pairs(6, Status::failed, Status::ok)).verdict == Verdict::undecided);
  std::vector<Record> against = pairs(6, Status::ok, Status::ok);
  against[1].status = Status::diverged;
  CHECK(judge(comparison, against).verdict == Verdict::undecided);
}

TEST_CASE("claims.csv has the numbers of each verdict, the right way round") {
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

TEST_CASE("what a claim leaves open is averaged within a seed: depths are no seeds") {
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

TEST_CASE("as good as, within a margin, is what the whole interval says") {
  // Higher by 0.02, give or take 0.011.
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
  CHECK_THAT(within(0.02).why(), contains("higher by 0.02") && contains("5 pairs; margin 0.02 higher"));
  CHECK_THAT(within(0.025).why(), contains("pairs would decide"));
  // The other way round: what may not be lower.
  const auto not_less = [&](double margin) {
    return judge(not_lower("loss", {{"epsilon", 0}}, {{"epsilon", 0.1}}, margin), trials);
  };
  CHECK(not_less(0.1).verdict == Verdict::agree);
  CHECK(not_less(0.005).verdict == Verdict::disagree);
  CHECK_THAT(not_less(0.1).why(), contains("lower by 0.02") && contains("margin 0.1 lower"));
  CHECK_THAT(claims_csv({{"as good", "none", not_less(0.1)}}),
             contains("as good,none,agree,-0.0") && contains(",-0.1,5,5\n"));
  // Two pairs have no interval, and a trial that diverged is not as good as one that did not.
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 10), {trials.begin(), trials.begin() + 4})
            .verdict == Verdict::undecided);
  std::vector<Record> lost;
  for (int seed = 0; seed < 6; ++seed)
    lost.push_back(trial(0, 6, seed, 2)), lost.push_back(trial(0.1, 6, seed, 1, Status::diverged));
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 10), lost).verdict == Verdict::disagree);
  // One that diverged on the other side among nine that are worse by less than the margin: all ten are good enough.
  std::vector<Record> close;
  for (int seed = 0; seed < 10; ++seed)
    close.push_back(trial(0, 6, seed, 2, seed == 0 ? Status::diverged : Status::ok)),
        close.push_back(trial(0.1, 6, seed, 2.001));
  CHECK(judge(not_higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}, 0.1), close).verdict == Verdict::agree);
  CHECK(judge(lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}), close).verdict == Verdict::disagree);
  CHECK_THROWS_WITH(not_higher("loss", {}, {}, 0), contains("expected a margin above 0 for loss, got 0"));
}

TEST_CASE("better by an amount that matters is what the whole interval says") {
  // Lower by 0.02, give or take 0.011.
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
    CHECK(judge(c.by_at_least(0.1), trials).verdict == Verdict::disagree);  // lower, and by too little
  }
  CHECK_THAT(judge(plain.by_at_least(0.02), trials).why(),
             contains("lower by 0.02") && contains("5 pairs; claimed at least 0.02 lower"));
  CHECK_THAT(judge(up.by_at_least(0.02), trials).why(),
             contains("higher by 0.02") && contains("5 pairs; claimed at least 0.02 higher"));
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

TEST_CASE("a value beside a number") {
  std::vector<Record> trials;
  for (std::int64_t seed = 0; seed < 4; ++seed)
    trials.push_back(trial(0.1, 6, seed, 3.0 + 0.1 * static_cast<double>(seed))),
        trials.push_back(trial(0, 6, seed, 0));
  CHECK(judge(above("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::agree);
  CHECK(judge(below("loss", 1, {{"epsilon", 0.1}}), trials).verdict == Verdict::disagree);
  CHECK(judge(above("loss", 3.1, {{"epsilon", 0.1}}), trials).verdict == Verdict::undecided);
  CHECK(judge(below("loss", 9, {{"epsilon", 0.1}, {"depth", 7}}), trials).verdict ==
        Verdict::undecided);  // no such trials
  CHECK_THAT(judge(above("loss", 1, {{"epsilon", 0.1}}), trials).why(),
             contains("higher by 2.15") && contains("4 pairs with 1"));
}
