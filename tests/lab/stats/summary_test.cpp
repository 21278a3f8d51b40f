#include "experiments/lab/stats/summary.h"

#include <cmath>
#include <numeric>

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

namespace {

std::vector<TrialResult> survivors(const std::vector<std::int64_t>& diverged_at, int ok) {
  std::vector<TrialResult> trials;
  for (const std::int64_t step : diverged_at) trials.push_back(test::dead("a", 6, trials.size(), step));
  for (int i = 0; i < ok; ++i) trials.push_back(trial_with_status("a", 6, trials.size(), Status::ok, 1));
  return trials;
}

}  // namespace

TEST_CASE("median survival has an interval by order statistics") {
  const auto of = [](const std::vector<std::int64_t>& diverged_at, int ok) {
    const std::vector<TrialResult> trials = survivors(diverged_at, ok);
    return survival(group_trials(trials).front());
  };
  CHECK(of({41, 69}, 1).median == 69);
  CHECK_FALSE(of({41}, 2).median);
  CHECK(of({41}, 1).median == 41);  // half of the trials have ended early
  CHECK_FALSE(of({10, 20, 30, 40, 50}, 0).has_interval);
  // The ends of the interval are order statistics. For n = 6 the ends are the smallest and the largest value, with
  // probability 1 - 2 / 64 = 97 %. For n = 10 the ends are the second smallest and the second largest value, with 98 %.
  // For n = 20 the ends are the sixth smallest and the sixth largest value, with 96 % (a textbook's table).
  const Survival six = of({10, 20, 30, 40, 50, 60}, 0);
  CHECK((six.n == 6 && six.median == 30 && six.has_interval && six.low == 10 && six.high == 60));
  const Survival ten = of({10, 20, 30, 40, 50, 60}, 4);
  CHECK((ten.n == 10 && ten.median == 50 && ten.has_interval && ten.low == 20 && !ten.high));
  const Survival most = of({5}, 9);
  CHECK((most.n == 10 && !most.median && !most.has_interval));
  std::vector<std::int64_t> until_20(20);
  std::iota(until_20.begin(), until_20.end(), 1);
  const Survival twenty = of(until_20, 0);
  CHECK((twenty.median == 10 && twenty.low == 6 && twenty.high == 15));
  // A hopeless trial counts as lost at its last step. A failed trial does not count.
  std::vector<TrialResult> given_up = survivors({10, 10, 10}, 0);
  for (std::uint64_t seed = 3; seed < 7; ++seed) {
    given_up.push_back(trial_with_status("a", 6, seed, seed < 6 ? Status::hopeless : Status::failed, std::nullopt));
    given_up.back().steps = seed < 6 ? 150 : 5;
  }
  const Survival hopeless = survival(group_trials(given_up).front());
  CHECK((hopeless.n == 6 && hopeless.median == 10 && hopeless.low == 10 && hopeless.high == 150));
}

TEST_CASE("median survival in words") {
  CHECK(to_string(Survival{.n = 3, .median = 69}, 300) == "median survival 69 steps, n = 3 (no interval below 6)");
  CHECK(to_string(Survival{.n = 3}, 300) == "median survival beyond 300 steps, n = 3 (no interval below 6)");
  CHECK(to_string(Survival{.n = 6, .median = 30, .has_interval = true, .low = 10, .high = 60}, 300) ==
        "median survival 30 steps, n = 6 (95 % interval 10 to 60)");
  CHECK(to_string(Survival{.n = 10, .median = 50, .has_interval = true, .low = 20}, 300) ==
        "median survival 50 steps, n = 10 (95 % interval 20 to beyond 300)");
  CHECK(to_string(Survival{.n = 10}, 300) ==
        "median survival beyond 300 steps, n = 10 (95 % interval also beyond these steps)");
}
