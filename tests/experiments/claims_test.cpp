#include "experiments/common/claims.h"

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;

namespace {

Record arm(double epsilon, std::int64_t depth, std::int64_t seed, double loss, Status status = Status::ok) {
  return {.point = {{"depth", depth}, {"epsilon", epsilon}, {"seed", seed}}, .status = status, .values = {{"loss", loss}}};
}

const Comparison comparison = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}});

}  // namespace

TEST_CASE("a claim is judged pair by pair") {
  // Seeds differ far more than the two values do.
  std::vector<Record> arms;
  for (std::int64_t seed = 0; seed < 4; ++seed) {
    arms.push_back(arm(0, 6, seed, 10.0 * static_cast<double>(seed)));
    arms.push_back(arm(0.1, 6, seed, 10.0 * static_cast<double>(seed) - 1 - 0.1 * static_cast<double>(seed)));
  }
  const ClaimResult agree = judge(comparison, arms);
  CHECK(agree.verdict == Verdict::agree);
  CHECK_THAT(agree.why(), contains("lower by 1.15, 95 % interval ") && contains(" 4 pairs"));
  const ClaimResult disagree = judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}}), arms);
  CHECK(disagree.verdict == Verdict::disagree);
  CHECK(judge(comparison.at({{"depth", 12}}), arms).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison.at({{"depth", 12}}), arms).why(), contains("no pairs"));
  arms[1].values[0].second = 30;
  CHECK(judge(comparison, arms).verdict == Verdict::undecided);
}

TEST_CASE("a claim needs pairs: one is none, and divergence decides only where enough say the same") {
  CHECK(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1)}).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1)}).why(), contains("lower by 1 in one pair"));
  CHECK(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 1, 1)}).verdict == Verdict::undecided);  // of different seeds
  const auto pairs = [](int n, Status at_zero, Status at_tenth) {
    std::vector<Record> arms;
    for (int seed = 0; seed < n; ++seed) {
      arms.push_back(arm(0, 6, seed, 2, at_zero));
      arms.push_back(arm(0.1, 6, seed, 1, at_tenth));
    }
    return arms;
  };
  CHECK(judge(comparison, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(comparison, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  CHECK(judge(comparison, pairs(5, Status::diverged, Status::ok)).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison, pairs(5, Status::diverged, Status::ok)).why(), contains("; about 6 pairs would decide"));
  // The one that diverged is the worse, whichever way is better.
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(up, pairs(6, Status::diverged, Status::ok)).verdict == Verdict::agree);
  CHECK(judge(up, pairs(6, Status::ok, Status::diverged)).verdict == Verdict::disagree);
  CHECK_THAT(judge(up, {arm(0, 6, 0, 1), arm(0.1, 6, 0, 2), arm(0, 6, 1, 1), arm(0.1, 6, 1, 2.01)}).why(), contains("higher by 1"));
  // A failed arm is no pair; one that diverged against the others leaves it open.
  CHECK(judge(comparison, pairs(6, Status::failed, Status::ok)).verdict == Verdict::undecided);
  std::vector<Record> against = pairs(6, Status::ok, Status::ok);
  against[1].status = Status::diverged;
  CHECK(judge(comparison, against).verdict == Verdict::undecided);
}

TEST_CASE("claims.csv has the numbers of each verdict, the right way round") {
  std::vector<Record> arms;
  for (int seed = 0; seed < 3; ++seed) {
    arms.push_back(arm(0, 6, seed, 1 + 0.1 * seed));
    arms.push_back(arm(0.1, 6, seed, 2 + 0.11 * seed));
  }
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  const std::string csv = claims_csv({{"more, is better", "a paper", judge(up, arms)}, {"less is", "none", judge(comparison, {})}});
  CHECK_THAT(csv, contains("claim,source,verdict,difference,low,high,n,needed\n\"more, is better\",a paper,agree,1.01,0.98") &&
                      contains("\nless is,none,undecided,,,,0,\n"));
}

TEST_CASE("what a claim leaves open is averaged within a seed: depths are no seeds") {
  std::vector<Record> arms;
  for (const std::int64_t depth : {6, 12, 24})
    for (const double epsilon : {0.0, 0.1}) arms.push_back(arm(epsilon, depth, 0, (epsilon > 0 ? 1 : 2) + 0.01 * static_cast<double>(depth)));
  const Comparison open = lower("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(open, arms).difference.n == 1);
  CHECK(judge(open, arms).difference.mean == Approx(-1));
  arms.push_back(arm(0.1, 24, 1, 1, Status::diverged));
  arms.push_back(arm(0, 24, 1, 1));
  CHECK(judge(open, arms).difference.diverged_first == 1);
}
