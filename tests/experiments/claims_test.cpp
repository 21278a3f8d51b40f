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
  CHECK_THAT(agree.why, contains("lower by 1.15 ± 0.2") && contains("over 4 pairs"));
  const ClaimResult disagree = judge(higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 6}}), arms);
  CHECK(disagree.verdict == Verdict::disagree);
  CHECK(judge(comparison.at({{"depth", 12}}), arms).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison.at({{"depth", 12}}), arms).why, contains("no two arms"));
  arms[1].values[0].second = 30;
  CHECK(judge(comparison, arms).verdict == Verdict::undecided);
}

TEST_CASE("a claim needs pairs: one is none, and divergence decides only where all say the same") {
  CHECK(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1)}).verdict == Verdict::undecided);
  CHECK_THAT(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1)}).why, contains("1 pair: no interval"));
  CHECK(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 1, 1)}).verdict == Verdict::undecided);  // of different seeds
  CHECK(judge(comparison, {arm(0, 6, 0, 2, Status::diverged), arm(0.1, 6, 0, 1), arm(0, 6, 1, 2, Status::diverged), arm(0.1, 6, 1, 1)}).verdict ==
        Verdict::agree);
  CHECK(judge(comparison, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1, Status::diverged), arm(0, 6, 1, 2), arm(0.1, 6, 1, 1, Status::diverged)}).verdict ==
        Verdict::disagree);
  // The one that diverged is the worse, whichever way is better.
  const Comparison up = higher("loss", {{"epsilon", 0.1}}, {{"epsilon", 0}});
  CHECK(judge(up, {arm(0, 6, 0, 2, Status::diverged), arm(0.1, 6, 0, 1), arm(0, 6, 1, 2, Status::diverged), arm(0.1, 6, 1, 1)}).verdict ==
        Verdict::agree);
  CHECK(judge(up, {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1, Status::diverged), arm(0, 6, 1, 2), arm(0.1, 6, 1, 1, Status::diverged)}).verdict ==
        Verdict::disagree);
  CHECK_THAT(judge(up, {arm(0, 6, 0, 1), arm(0.1, 6, 0, 2), arm(0, 6, 1, 1), arm(0.1, 6, 1, 2.01)}).why, contains("higher by 1"));
  CHECK(judge(comparison, {arm(0, 6, 0, 2, Status::diverged), arm(0.1, 6, 0, 1)}).verdict == Verdict::undecided);
  CHECK(judge(comparison, {arm(0, 6, 0, 2, Status::diverged), arm(0.1, 6, 0, 1), arm(0, 6, 1, 2), arm(0.1, 6, 1, 1, Status::diverged)}).verdict ==
        Verdict::undecided);
  CHECK(judge(comparison, {arm(0, 6, 0, 2, Status::failed), arm(0.1, 6, 0, 1), arm(0, 6, 1, 2, Status::failed), arm(0.1, 6, 1, 1)}).verdict ==
        Verdict::undecided);
  // Two pairs say lower, and the third diverged in the first: not agreed.
  CHECK(judge(comparison,
              {arm(0, 6, 0, 2), arm(0.1, 6, 0, 1), arm(0, 6, 1, 2), arm(0.1, 6, 1, 1.01), arm(0, 6, 2, 2), arm(0.1, 6, 2, 1, Status::diverged)})
            .verdict == Verdict::undecided);
}
