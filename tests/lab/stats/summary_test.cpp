#include "experiments/lab/stats/summary.h"

#include <cmath>

#include "core/error.h"
#include "experiments/lab/stats/distributions.h"
#include "experiments/lab/stats/groups.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;

namespace {

// Exact for two degrees of freedom, an inverse nobody has to look up.
double quantile_two_degrees(double p) { return (2 * p - 1) / std::sqrt(2 * p * (1 - p)); }

TrialResult trial(const std::string& gate, std::int64_t depth, std::uint64_t seed, Status status,
                  std::optional<double> loss) {
  TrialResult a;
  a.method = gate;
  a.depth = depth;
  a.lr = 1e-3;
  a.seed = seed;
  a.status = status;
  a.train_loss = loss;
  return a;
}

}  // namespace

TEST_CASE("t quantiles equal the known ones") {
  const double pi = std::acos(-1.0);
  CHECK(student_t_quantile(0.975, 1) == Approx(std::tan(0.475 * pi)).epsilon(1e-11));
  CHECK(student_t_quantile(0.975, 2) == Approx(quantile_two_degrees(0.975)).epsilon(1e-11));
  // Tables of the t distribution, ten digits.
  const std::pair<double, double> known[] = {
      {3, 3.182446305},  {4, 2.776445105},  {5, 2.570581836},  {9, 2.262157163},   {10, 2.228138852},
      {29, 2.045229642}, {30, 2.042272456}, {99, 1.984216952}, {100, 1.983971519}, {1000, 1.962339081}};
  for (const auto& [degrees, t] : known) CHECK(student_t_quantile(0.975, degrees) == Approx(t).margin(2e-9).epsilon(0));
  CHECK(student_t_quantile(0.95, 7) == Approx(1.894578605).margin(2e-9).epsilon(0));
  CHECK(student_t_quantile(0.9995, 2) == Approx(quantile_two_degrees(0.9995)).epsilon(1e-10));
}

TEST_CASE("t quantiles are antisymmetric, monotone in the degrees, and normal in the limit") {
  CHECK(student_t_quantile(0.025, 4) == Approx(-student_t_quantile(0.975, 4)).epsilon(1e-13));
  CHECK(student_t_quantile(0.5, 4) == Approx(0).margin(1e-12));
  CHECK(student_t_quantile(0.975, 1e12) == Approx(1.959963984540054).epsilon(1e-11));
  CHECK(student_t_quantile(0.975, 100001) == Approx(student_t_quantile(0.975, 99999)).margin(1e-9).epsilon(0));
  for (double d = 1; d < 2e5; d *= 1.7) CHECK(student_t_quantile(0.975, d) > student_t_quantile(0.975, d * 1.7));
}

TEST_CASE("a t quantile outside its domain is refused") {
  CHECK_THAT(error_of([] { student_t_quantile(1, 3); }), contains("expected 0 < p < 1"));
  CHECK_THROWS_AS(student_t_quantile(0.975, 0), Error);
  CHECK_THROWS_AS(student_t_quantile(std::nan(""), 3), Error);
}

TEST_CASE("a summary has mean, sample deviation and t interval") {
  const Summary s = summarize({1, 2, 3, 4, 5});
  CHECK(s.n == 5);
  CHECK(s.mean == 3);
  CHECK(*s.deviation == Approx(std::sqrt(2.5)));
  CHECK(*s.half_width == Approx(2.776445105 * std::sqrt(0.5)).epsilon(1e-9));
  CHECK(s.low() == s.mean - *s.half_width);
}

TEST_CASE("one value has no interval, none has no mean, and what is not finite does not count") {
  const Summary one = summarize({7, std::nan(""), std::numeric_limits<double>::infinity()});
  CHECK(one.n == 1);
  CHECK(one.mean == 7);
  CHECK_FALSE(one.half_width);
  CHECK_FALSE(one.deviation);
  CHECK(summarize({}).n == 0);
  CHECK(std::isnan(summarize({}).mean));
}

TEST_CASE("the deviation does not cancel far from zero") { CHECK(*summarize({1e9, 1e9 + 1, 1e9 + 2}).deviation == 1); }

TEST_CASE("tails of Student's distribution and the quantiles that undo them") {
  CHECK(student_t_tail(0, 3) == Approx(0.5));
  CHECK(student_t_tail(2.7764451, 4) == Approx(0.025).epsilon(1e-6));
  CHECK(student_t_tail(1.9599640, 1e9) == Approx(0.025).epsilon(1e-6));
  for (const double degrees : {0.5, 1.0, 2.0, 3.7, 30.0, 1e4})
    for (const double tail : {0.49, 0.1, 1e-3, 1e-8})
      CHECK(student_t_tail(student_t_quantile(1 - tail, degrees), degrees) == Approx(tail).epsilon(1e-7));
}

TEST_CASE("trials are gathered over seeds in order of appearance") {
  const std::vector<TrialGroup> groups =
      group_trials({trial("rezero", 48, 0, Status::ok, 1.0), trial("post", 6, 0, Status::diverged, 900.0),
                    trial("rezero", 48, 1, Status::ok, 2.0), trial("rezero", 6, 0, Status::failed, std::nullopt),
                    trial("rezero", 48, 2, Status::diverged, std::nullopt)});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].method == "rezero");
  CHECK(groups[0].depth == 48);
  CHECK(groups[0].ok == 2);
  CHECK(groups[0].diverged == 1);
  CHECK(groups[0].trials.size() == 3);
  CHECK(groups[0].train_loss.mean == 1.5);
  CHECK(groups[1].method == "post");
  CHECK(groups[1].train_loss.n == 0);
  CHECK(groups[2].depth == 6);
  CHECK(groups[2].failed == 1);
}

TEST_CASE("trials with different learning rates are different groups") {
  TrialResult a = trial("pre", 6, 0, Status::ok, 1.0), b = a;
  b.lr = 2e-3;
  CHECK(group_trials({a, b}).size() == 2);
}

namespace {

TrialGroup survivors(const std::vector<std::int64_t>& diverged_at, int ok) {
  std::vector<TrialResult> trials;
  for (const std::int64_t step : diverged_at)
    trials.push_back({.method = "a", .status = Status::diverged, .steps = step, .diverged_at = step});
  for (int i = 0; i < ok; ++i) trials.push_back({.method = "a", .steps = 300, .train_loss = 1});
  return group_trials(trials).front();
}

}  // namespace

TEST_CASE("median survival: what half survive, with an interval by order statistics") {
  const auto words = [](const std::vector<std::int64_t>& diverged_at, int ok) {
    return to_string(survival(survivors(diverged_at, ok)), 300);
  };
  CHECK(words({41, 69}, 1) == "median survival 69 steps, n = 3 (no interval below 6)");
  CHECK(words({41}, 2) == "median survival beyond 300 steps, n = 3 (no interval below 6)");
  CHECK(words({41}, 1) == "median survival 41 steps, n = 2 (no interval below 6)");  // half are gone
  // n = 6: the smallest and the largest, 1 - 2 / 64 = 97 %; n = 10: the second, 98 %; n = 20: the sixth, 96 % (a
  // textbook's table).
  CHECK(words({10, 20, 30, 40, 50, 60}, 0) == "median survival 30 steps, n = 6 (95 % interval 10 to 60)");
  CHECK(words({10, 20, 30, 40, 50, 60}, 4) == "median survival 50 steps, n = 10 (95 % interval 20 to beyond 300)");
  CHECK(words({5}, 9) == "median survival beyond 300 steps, n = 10, and so is its 95 % interval");
  TrialGroup given_up = survivors({10, 10, 10}, 0);
  for (int i = 0; i < 3; ++i) given_up.trials.push_back({.method = "a", .status = Status::hopeless, .steps = 150});
  given_up.trials.push_back({.method = "a", .status = Status::failed, .steps = 5});
  CHECK(to_string(survival(given_up), 300) == "median survival 10 steps, n = 6 (95 % interval 10 to 150)");
  std::vector<std::int64_t> twenty;
  for (std::int64_t i = 1; i <= 20; ++i) twenty.push_back(i);
  CHECK(words(twenty, 0) == "median survival 10 steps, n = 20 (95 % interval 6 to 15)");
}
