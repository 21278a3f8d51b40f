#include "experiments/lab/stats/summary.h"

#include <cmath>

#include "experiments/lab/stats/groups.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;

namespace {

TrialResult trial_with_status(const std::string& gate, std::int64_t depth, std::uint64_t seed, Status status,
                              std::optional<double> loss) {
  TrialResult a = test::trial_of(gate, depth, seed, {});
  a.status = status;
  if (loss) a.values = {{"train_loss", *loss}};
  return a;
}

}  // namespace

TEST_CASE("a summary has mean, sample deviation and t interval") {
  const Summary s = summarize({1, 2, 3, 4, 5});
  CHECK(s.n == 5);
  CHECK(s.mean == 3);
  CHECK(*s.deviation == Approx(std::sqrt(2.5)));
  CHECK(*s.half_width == Approx(2.776445105 * std::sqrt(0.5)).epsilon(1e-9));
  CHECK(s.low() == s.mean - *s.half_width);
}

TEST_CASE("one value has no interval and values that are not finite do not count") {
  const Summary one = summarize({7, std::nan(""), std::numeric_limits<double>::infinity()});
  CHECK(one.n == 1);
  CHECK(one.mean == 7);
  CHECK_FALSE(one.half_width);
  CHECK_FALSE(one.deviation);
  CHECK(summarize({}).n == 0);
  CHECK(std::isnan(summarize({}).mean));
}

TEST_CASE("the deviation of large values does not suffer from cancellation") {
  CHECK(*summarize({1e9, 1e9 + 1, 1e9 + 2}).deviation == 1);
}

TEST_CASE("trials that differ in their seeds form groups in the order of their first trials") {
  const std::vector<TrialResult> trials{trial_with_status("rezero", 48, 0, Status::ok, 1.0),
                                        trial_with_status("post", 6, 0, Status::diverged, 900.0),
                                        trial_with_status("rezero", 48, 1, Status::ok, 2.0),
                                        trial_with_status("rezero", 6, 0, Status::failed, std::nullopt),
                                        trial_with_status("rezero", 48, 2, Status::diverged, std::nullopt)};
  const std::vector<TrialGroup> groups = group_trials(trials);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].method == "rezero");
  CHECK(groups[0].depth() == 48);
  CHECK(groups[0].count(Status::ok) == 2);
  CHECK(groups[0].count(Status::diverged) == 1);
  CHECK(groups[0].trials.size() == 3);
  CHECK(groups[0].summary("train_loss").mean == 1.5);
  CHECK(groups[0].summary("steps").mean == 4);
  CHECK(groups[0].summary("val_loss").n == 0);
  CHECK(groups[1].method == "post");
  CHECK(groups[1].summary("train_loss").n == 0);
  CHECK(groups[2].depth() == 6);
  CHECK(groups[2].count(Status::failed) == 1);

  const std::vector<TrialGroup> across = group_trials(trials, "depth");
  REQUIRE(across.size() == 2);
  CHECK(across[0].point == Point{{"gate", "rezero"}, {"lr", 1e-3}});
  CHECK(across[0].trials.size() == 4);
  CHECK(across[0].depth() == 0);
}

TEST_CASE("means leave out seeds that did not train, unless none trained") {
  std::vector<TrialResult> trials{
      trial_with_status("post", 48, 0, Status::ok, 0.5), trial_with_status("post", 48, 1, Status::ok, 0.7),
      trial_with_status("post", 48, 2, Status::ok, 3.3), trial_with_status("post", 48, 3, Status::diverged, {})};
  trials[2].trained = trials[3].trained = false;
  const TrialGroup some = group_trials(trials).front();
  CHECK(some.averaged().size() == 2);
  CHECK(some.summary("train_loss").mean == Approx(0.6));
  CHECK(outcome(some) == "1 of 4 did not train; 1 of 4 diverged");
  trials[0].trained = trials[1].trained = false;
  const TrialGroup none = group_trials(trials).front();
  CHECK(none.averaged().size() == 3);
  CHECK(none.summary("train_loss").mean == Approx(1.5));
  CHECK(outcome(none) == "3 of 4 did not train; 1 of 4 diverged");
  trials.resize(1);
  CHECK(outcome(group_trials(trials).front()) == "did not train");
}

TEST_CASE("trials with different learning rates are different groups") {
  TrialResult a = trial_with_status("pre", 6, 0, Status::ok, 1.0), b = a;
  b.point.set("lr", 2e-3);
  const std::vector<TrialResult> both{a, b};
  CHECK(group_trials(both).size() == 2);
}
