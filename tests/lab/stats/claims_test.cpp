#include "experiments/lab/stats/claims.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "experiments/lab/stats/claim_check.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;
using Catch::Matchers::EndsWith;

namespace {

const Point zero{{"epsilon", 0}}, tenth{{"epsilon", 0.1}};
const Comparison comparison = lower("loss", tenth, zero);

// The values of trials at ten seeds. They vary more than arms differ, and sums with halves and quarters are exact.
Outcomes by_seed(double even = 0, std::optional<double> odd = {}) {
  Outcomes values{3, 5, 4, 8, 6, 7, 9, 2, 5, 4};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += i % 2 == 0 ? even : odd.value_or(even);
  return values;
}

// The trials of a combination of the axes: a value for each seed from 0. A trial diverged if its value is infinite.
std::vector<TrialResult> arm(Point cell, const Outcomes& values, const std::string& name = "loss") {
  std::vector<TrialResult> trials;
  for (std::size_t seed = 0; seed < values.size(); ++seed) {
    Point point = cell;
    point.set("seed", static_cast<std::int64_t>(seed));
    const Status status = std::isinf(values[seed]) ? Status::diverged : Status::ok;
    trials.push_back({.method = cell.label(), .point = point, .status = status, .values = {{name, values[seed]}}});
  }
  return trials;
}

std::vector<TrialResult> operator+(std::vector<TrialResult> a, const std::vector<TrialResult>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Epsilon 0.1 with these values, and epsilon 0 with the values by_seed().
std::vector<TrialResult> apart(const Outcomes& values, const std::string& name = "loss") {
  return arm(tenth, values, name) + arm(zero, by_seed(), name);
}
std::vector<TrialResult> apart(double difference, const std::string& name = "loss") {
  return apart(by_seed(difference), name);
}

std::vector<TrialResult> with(const char* axis, AxisValue value, std::vector<TrialResult> trials) {
  for (TrialResult& a : trials) a.point.set(axis, value);
  return trials;
}

std::vector<JudgedClaim> judge(const std::vector<Claim>& claims, std::vector<TrialResult> trials, Judging how = {},
                               std::vector<TrialResult> neighbours = {}) {
  prepare(trials, how), prepare(neighbours, how);
  std::vector<TrialGroup> groups = group_trials(trials);
  add_neighbours(groups, neighbours);
  return judge_claims(claims, groups, how);
}
// The only claim of a study, and its result at the only place that the trials have.
JudgedClaim claim_of(const Comparison& c, const std::vector<TrialResult>& trials, const Judging& how = {},
                     const std::vector<TrialResult>& neighbours = {}) {
  return judge({{"a claim", "a paper", c}}, trials, how, neighbours).at(0);
}
ClaimResult result_of(const Comparison& c, const std::vector<TrialResult>& trials, const Judging& how = {},
                      const std::vector<TrialResult>& neighbours = {}) {
  const JudgedClaim claim = claim_of(c, trials, how, neighbours);
  REQUIRE(claim.results.size() == 1);
  return claim.results[0];
}

std::string score(const ClaimResult& r) {
  return fmt::format("{}:{} of {}", r.difference.duel.wins, r.difference.duel.losses, r.difference.duel.seeds);
}

// Searches have chosen 0.001 for epsilon 0.1, and 0.002 for epsilon 0.
const Judging own_rates{.own_rates = true, .rates = {{.cell = tenth, .rate = 1e-3}, {.cell = zero, .rate = 2e-3}}};
std::vector<TrialResult> at_own_rates(double difference) {
  return with("lr", 1e-3, arm(tenth, by_seed(difference))) + with("lr", 2e-3, arm(zero, by_seed()));
}
std::vector<TrialResult> neighbour(const Point& cell, std::int64_t half_octaves, const Outcomes& values) {
  return with(neighbour_steps, half_octaves, arm(cell, values));
}

}  // namespace

TEST_CASE("a comparison at a place that a side excludes is an error") {
  const Comparison c = lower("train_loss", {{"epsilon", 0.1}, {"gate", "pre"}}, {{"epsilon", 0.0}, {"gate", "pre"}});
  CHECK(c.at({{"gate", "pre"}}).where == Point{{"gate", "pre"}});
  CHECK_THAT(error_of([&] {
               (void)c.at({{"epsilon", 0.1}});
             }),
             contains("[claim] expected a place at which both sides have trials, got epsilon 0.1 for the side "));
}

TEST_CASE("a claim is judged seed by seed") {
  const JudgedClaim agree = claim_of(comparison, apart(-0.25));
  CHECK((agree.verdict == Verdict::agree && agree.verdict_words() == "agree"));
  CHECK_THAT(agree.why(), contains("10:0, lower by 0.25 (0.25 to 0.25); E = ") && EndsWith("; at this rate"));
  CHECK(claim_of(comparison, apart(0.25)).verdict == Verdict::disagree);
  CHECK(claim_of(comparison, apart(by_seed(-0.25, 0.25))).verdict_words() == "undecided");
  CHECK(claim_of(comparison, apart(by_seed(-0.03, 0.03))).verdict_words() == "equal within 0.05");
  // A decided order comes before an equality.
  const JudgedClaim both = claim_of(comparison, apart(-0.03));
  CHECK(both.verdict_words() == "agree");
  CHECK_THAT(both.why(), EndsWith("; equal within 0.05"));
  const JudgedClaim elsewhere = claim_of(comparison.at({{"depth", 6}}), apart(-0.25));
  CHECK((elsewhere.verdict == Verdict::undecided && elsewhere.why() == "no pairs"));
}

TEST_CASE("wins are the seeds that agree with the claim, and the reverse of a claim has the same verdict") {
  for (const char* value : {"loss", "accuracy"})
    for (const bool is_lower : {false, true}) {
      const std::vector<TrialResult> trials = apart(is_lower ? -0.25 : 0.25, value);
      const ClaimResult down = result_of(lower(value, tenth, zero), trials),
                        up = result_of(higher(value, tenth, zero), trials),
                        reverse = result_of(higher(value, zero, tenth), trials);
      INFO(down.why() << "\n" << up.why() << "\n" << reverse.why());
      CHECK((down.verdict == Verdict::agree) == is_lower);
      CHECK((up.verdict == Verdict::disagree) == is_lower);
      CHECK((reverse.verdict == down.verdict && reverse.difference.evidence == down.difference.evidence));
      CHECK((score(down) == "10:0 of 10" && score(up) == "0:10 of 10") == is_lower);
      CHECK(score(reverse) == score(down));
      // The words are about the values at the first point of the claim.
      CHECK_THAT(up.why(), contains(is_lower ? "lower by 0.25" : "higher by 0.25"));
      CHECK_THAT(reverse.why(), contains(is_lower ? "higher by 0.25" : "lower by 0.25"));
    }
}

TEST_CASE("a difference of exactly the margin counts against the claim") {
  for (const char* value : {"loss", "accuracy"})
    for (const bool up : {false, true}) {
      const auto at_least = [&](double margin) {
        return result_of((up ? higher : lower)(value, tenth, zero).by_at_least(margin),
                         apart(up ? 0.25 : -0.25, value));
      };
      const auto as_good = [&](double margin) {
        return result_of((up ? not_lower : not_higher)(value, tenth, zero, margin), apart(up ? -0.25 : 0.25, value));
      };
      INFO(value << ", " << up);
      CHECK((at_least(0.125).verdict == Verdict::agree && as_good(0.5).verdict == Verdict::agree));
      CHECK((score(at_least(0.25)) == "0:10 of 10" && score(as_good(0.25)) == "0:10 of 10"));
      CHECK((at_least(0.5).verdict == Verdict::disagree && as_good(0.125).verdict == Verdict::disagree));
      CHECK_THAT(at_least(0.5).why(), contains(up ? "higher by 0.25" : "lower by 0.25") &&
                                          EndsWith(up ? "claimed at least 0.5 higher" : "claimed at least 0.5 lower"));
      CHECK_THAT(as_good(0.5).why(), EndsWith(up ? "; margin 0.5 lower" : "; margin 0.5 higher"));
      CHECK_FALSE(as_good(0.5).difference.within);
    }
}

TEST_CASE("a claim compares a value with a constant") {
  const std::vector<TrialResult> trials = arm(tenth, by_seed());  // values from 2 to 9
  CHECK(result_of(above("loss", 1.5, tenth), trials).verdict == Verdict::agree);
  CHECK(result_of(below("loss", 1.5, tenth), trials).verdict == Verdict::disagree);
  CHECK(result_of(above("accuracy", 10, tenth), arm(tenth, by_seed(), "accuracy")).verdict == Verdict::disagree);
  const ClaimResult three = result_of(above("loss", 3, tenth), trials);
  CHECK((score(three) == "8:1 of 10" && three.verdict == Verdict::undecided && !three.difference.within));
  CHECK_THAT(three.why(), EndsWith("; compared with 3"));
  // A diverged trial has a loss above every constant.
  CHECK(result_of(below("loss", 10, tenth), arm(tenth, Outcomes(10, infinity))).verdict == Verdict::disagree);
}

TEST_CASE("a failed trial loses if the value says how well a network trains, and is no bet otherwise") {
  Outcomes some = by_seed(-0.25);
  some[0] = some[3] = infinity;
  const ClaimResult loss = result_of(comparison, apart(some));
  CHECK((score(loss) == "8:2 of 10" && loss.difference.median.n == 8));
  CHECK_THAT(loss.why(), contains("lower by 0.25 (0.25 to 0.25) where both train; 2 and 0 of 10 seeds failed"));
  const ClaimResult ratio = result_of(lower("ratio", tenth, zero), apart(some, "ratio"));
  CHECK((score(ratio) == "8:0 of 10" && ratio.difference.duel.failed_first == 0));
  // A failed trial is worse whichever direction is claimed. The first number of failures is that of the first point.
  const std::vector<TrialResult> none = apart(Outcomes(10, infinity));
  CHECK(result_of(comparison, none).verdict == Verdict::disagree);
  const ClaimResult up = result_of(higher("loss", tenth, zero), none);
  CHECK(up.verdict == Verdict::agree);
  CHECK_THAT(up.why(), contains("10:0, no seed trained with both; 10 and 0 of 10 seeds failed"));
  // A trial near chance failed for every measure of training.
  std::vector<TrialResult> trials = apart(0.25, "val_accuracy");
  trials[1].values.emplace_back("train_loss", 2.25);
  CHECK(score(result_of(higher("val_accuracy", tenth, zero), trials, {.chance = chance_of_classes(10)})) ==
        "9:1 of 10");
}

TEST_CASE("seeds count up to the first trial that is missing or ended in an error") {
  const std::vector<TrialResult> trials = apart(-0.25);
  std::vector<TrialResult> missing = trials, error = trials, without_value = trials;
  missing.erase(missing.begin() + 5);
  error[10 + 5].status = Status::failed;
  CHECK(score(result_of(comparison, missing)) == "5:0 of 5");
  CHECK(score(result_of(comparison, error)) == "5:0 of 5");
  // A trial that trained without measuring the value is no bet.
  without_value[5].values.clear();
  CHECK(score(result_of(comparison, without_value)) == "9:0 of 10");
  // Only the judged seeds count.
  CHECK(score(result_of(comparison, trials, {.seeds = {2, 3, 7}})) == "3:0 of 3");
  CHECK(score(result_of(comparison, trials, {.seeds = {8, 9, 10, 11}})) == "2:0 of 2");
}

TEST_CASE("a claim is judged at each value of an axis that it does not name") {
  const auto claim = [](const char* axis, const Outcomes& at_6, const Outcomes& at_24) {
    return claim_of(comparison, with(axis, 6, apart(at_6)) + with(axis, 24, apart(at_24)));
  };
  const JudgedClaim both = claim("depth", by_seed(-0.25), by_seed(-0.5));
  CHECK(both.verdict == Verdict::agree);
  CHECK_THAT(both.why(),
             contains("depth 6: agree, 10:0, lower by 0.25 ") && contains("; depth 24: agree, 10:0, lower by 0.5"));
  // An undecided place does not change the verdict. Two opposite places do.
  CHECK(claim("depth", by_seed(-0.25), by_seed(-1, 1)).verdict == Verdict::agree);
  CHECK(claim("depth", by_seed(-0.01, 0.01), by_seed(-1, 1)).verdict == Verdict::undecided);
  CHECK(claim("depth", by_seed(-0.01, 0.01), by_seed(0.01, -0.01)).verdict == Verdict::equal);
  CHECK(claim("depth", by_seed(-0.25), by_seed(0.25)).verdict_words() == "depends on depth");
  const JudgedClaim rates = claim("lr", by_seed(0.25), by_seed(-0.25));
  CHECK(rates.verdict_words() == "depends on lr");
  CHECK_THAT(rates.why(), contains("lr 6: disagree, ") && contains("; lr 24: agree, ") && !contains("at lr"));
}

TEST_CASE("primary claims share 0.8 of the weight, and the places of a claim share its weight") {
  // All hypotheses stay open.
  const std::vector<TrialResult> trials = with("depth", 6, apart(0)) + with("depth", 24, apart(0));
  const auto needs = [&](const std::vector<Claim>& claims, const Judging& how = {}) {
    std::vector<int> found;
    for (const JudgedClaim& claim : judge(claims, trials, how))
      for (const ClaimResult& r : claim.results) found.push_back(static_cast<int>(std::lround(r.difference.needs)));
    return found;
  };
  const Claim shallow{"shallow", "", comparison.at({{"depth", 6}})}, all{"all", "", comparison};
  Claim primary = shallow;
  primary.primary();
  CHECK(needs({shallow, all}) == std::vector{40, 80, 80});
  CHECK(needs({primary, all}) == std::vector{25, 200, 200});
  CHECK(needs({primary, primary, shallow, shallow}) == std::vector{50, 50, 200, 200});
  CHECK(needs({primary, primary}) == std::vector{40, 40});
  // Claims that were added later are a family of their own, and change nothing for the others.
  const Judging planned{.planned_claims = {{primary.name(), "all"}}};
  Claim late{"late", "", comparison};
  CHECK(needs({primary, all, late, shallow}, planned) == std::vector{25, 200, 200, 80, 80, 40});
  late.primary();
  CHECK(needs({primary, all, late, shallow}, planned) == std::vector{25, 200, 200, 50, 50, 100});
  CHECK_THAT(error_of([&] { claims_not_judged(std::vector<Claim>(4, primary), {}, {}); }),
             contains("[claim] expected at most 3 primary claims, got 4"));
}

TEST_CASE("a claim that was added after the folder was made is post hoc") {
  const std::vector<TrialResult> trials = apart(-0.25);
  CHECK_FALSE(claim_of(comparison, trials).post_hoc);
  CHECK(claim_of(comparison, trials, {.planned_claims = {{"a claim"}}}).verdict_words() == "agree");
  const Judging another{.planned_claims = {{"another"}}};
  const JudgedClaim late = claim_of(comparison, trials, another);
  CHECK((late.post_hoc && late.verdict_words() == "agree (post hoc)"));
  CHECK_THAT(about_claims({late}, another),
             EndsWith(" Claims that were added later (post hoc) are a family of their own."));
  // A claim with another d or another weight is another claim.
  Claim claim{"a claim", "a paper", comparison.equal_within(0.5)};
  CHECK(claim.name() == "a claim [equal within 0.5]");
  CHECK(claim.primary().name() == "a claim [equal within 0.5] [primary]");
}

TEST_CASE("the largest difference that does not matter is that of the measure or of the claim") {
  const auto within = [](const Comparison& c, const std::string& value, double d) {
    return claim_of(c, apart(by_seed(-d, d), value)).verdict_words();
  };
  const auto claim = [](const char* value) { return lower(value, tenth, zero); };
  CHECK(within(claim("loss"), "loss", 0.04) == "equal within 0.05");
  CHECK(within(claim("loss"), "loss", 0.06) == "undecided");
  CHECK(within(claim("accuracy"), "accuracy", 0.008) == "equal within 0.01");
  CHECK(within(claim("accuracy"), "accuracy", 0.02) == "undecided");
  CHECK(within(claim("ratio"), "ratio", 0) == "undecided");
  CHECK(within(claim("ratio").equal_within(0.5), "ratio", 0.25) == "equal within 0.5");
  CHECK(within(claim("loss").equal_within(0.5), "loss", 0.25) == "equal within 0.5");
}

TEST_CASE("the worse side is beaten at its neighbouring rates, too, whichever side the claim favours") {
  for (const double difference : {-0.25, 0.25})
    for (const bool agrees : {true, false}) {
      const Point &worse = difference < 0 ? zero : tenth, &better = difference < 0 ? tenth : zero;
      const double own = std::max(difference, 0.0);  // of the worse side
      const auto result = [&](const std::vector<TrialResult>& neighbours) {
        return result_of(((difference < 0) == agrees ? lower : higher)("loss", tenth, zero), at_own_rates(difference),
                         own_rates, neighbours);
      };
      INFO(difference << ", " << agrees);
      // The neighbours of the better side do not matter.
      const ClaimResult untrained = result(neighbour(better, 1, by_seed(-9)));
      CHECK((untrained.verdict == Verdict::undecided && untrained.difference.wanted == std::vector{-1, 1}));
      CHECK((untrained.difference.lost == Side::first ? untrained.cell_first : untrained.cell_second) == worse);
      CHECK_THAT(untrained.why(), contains("; its neighbours are not trained"));
      const std::vector<TrialResult> below = neighbour(worse, -1, by_seed(own + 1));
      const ClaimResult stands = result(below + neighbour(worse, 1, by_seed(own + 0.5)));
      CHECK(stands.verdict == (agrees ? Verdict::agree : Verdict::disagree));
      CHECK_THAT(stands.why(), contains("; stands at its neighbours"));
      const ClaimResult falls = result(below + neighbour(worse, 1, by_seed(own + 1, own - 1)));
      CHECK((falls.verdict == Verdict::undecided && falls.difference.wanted.empty()));
      CHECK_THAT(falls.why(), contains("; does not stand at its neighbours"));
    }
  // A rate beyond the bound of the option is named.
  Judging bounded = own_rates;
  bounded.rates[1].beyond = {1, 2};
  CHECK_THAT(result_of(comparison, at_own_rates(-0.25), bounded, neighbour(zero, -1, by_seed(1))).why(),
             contains("stands at its neighbours; above the chosen rate is beyond the bound of the rate"));
}

TEST_CASE("no neighbours count before training, against constants and for a body that does not read its rate") {
  const auto at_this_rate = [](const Comparison& c, const Judging& how) {
    const ClaimResult r = result_of(c, at_own_rates(-0.25), how);
    CHECK_THAT(r.why(), contains("; at this rate"));
    return r.verdict == Verdict::agree;
  };
  CHECK(at_this_rate(comparison.at_init(), own_rates));
  CHECK(at_this_rate(above("loss", 1, zero), own_rates));
  // Own rates without a known search are no fixed rates.
  CHECK(result_of(comparison, at_own_rates(-0.25), {.own_rates = true}).verdict == Verdict::undecided);
  Judging unread = own_rates;
  unread.rates[1].unread = true;
  CHECK(at_this_rate(comparison, unread));
}

TEST_CASE("a claim about a method that no rate trains cannot be judged") {
  Judging blind = own_rates;
  blind.rates[0].blind = "stayed near chance at 0.000375 to 0.003";
  const JudgedClaim claim = claim_of(comparison, at_own_rates(-0.01), blind);
  CHECK((claim.verdict == Verdict::undecided && claim.verdict_words() == "cannot be judged"));
  CHECK_THAT(claim.why(),
             contains("; cannot be judged: no rate trains epsilon 0.1, which stayed near chance at 0.000375 to 0.003"));
  CHECK(claim_of(comparison.at_init(), at_own_rates(-0.25), blind).verdict == Verdict::agree);
  // A comparison with the other side only is not affected.
  CHECK(claim_of(above("loss", 1, zero), at_own_rates(0), blind).verdict == Verdict::agree);
}

TEST_CASE("old trials have evidence and no verdicts") {
  const JudgedClaim claim = claim_of(comparison, apart(-0.03), {.old_trials = true});
  CHECK((claim.verdict == Verdict::undecided && claim.verdict_words() == "old trials"));
  CHECK_THAT(claim.why(), contains("10:0, lower by 0.03 ") && EndsWith("; old trials: judged by another rule"));
  CHECK(claim.results[0].difference.evidence > 20);
  CHECK_THAT(about_claims({claim}, {.old_trials = true}), contains("older than the rule of judging"));
  Judging old = own_rates;
  old.old_trials = true;
  CHECK_THAT(claim_of(comparison, at_own_rates(-0.25), old).why(), contains("; old trials: neighbours not trained"));
}

TEST_CASE("a difference of accuracies below two images decides nothing") {
  const Judging images{.measures = measures_of_classification(10, 10000)};
  const Comparison better = higher("val_accuracy", tenth, zero);
  CHECK(result_of(better, apart(0.0003, "val_accuracy"), images).verdict == Verdict::agree);
  const ClaimResult one = result_of(better, apart(0.0001, "val_accuracy"), images);
  CHECK((one.verdict == Verdict::equal && one.difference.better == Side::none));
  CHECK_THAT(one.why(), contains("below the resolution of the measure"));
  // A margin says itself how much matters.
  CHECK(result_of(better.by_at_least(0.00005), apart(0.0001, "val_accuracy"), images).verdict == Verdict::agree);
}

TEST_CASE("a verdict names the learning rates of both sides") {
  const auto why = [](const Comparison& c, const std::vector<TrialResult>& trials, const Judging& how = {}) {
    return claim_of(c, trials, how).why();
  };
  CHECK_THAT(why(comparison, at_own_rates(0), own_rates), EndsWith("; at lr 0.001 against lr 0.002"));
  CHECK_THAT(why(comparison, with("lr", 0.002, apart(0))), EndsWith("; at lr 0.002"));
  CHECK_THAT(why(comparison, apart(0), {.rate = 0.003}), EndsWith("; at lr 0.003"));
  CHECK_THAT(why(below("loss", 1, zero), apart(0), {.rate = 0.003}), EndsWith("; at lr 0.003"));
  CHECK_THAT(why(comparison, with("depth", 6, apart(0)) + with("depth", 24, apart(0)), {.rate = 0.003}),
             contains("; at lr 0.003; depth 24: ") && EndsWith("; at lr 0.003"));
  // Trials with different rates form no pairs if the rates are those of the study.
  CHECK(claim_of(comparison, at_own_rates(0)).results.empty());
}

TEST_CASE("claims.csv has the numbers of each verdict with the sign of the measured values") {
  std::vector<TrialResult> trials = apart(0.25, "train_loss");
  for (TrialResult& a : trials)  // at epsilon 0.1, the validation loss is lower and the accuracy higher
    a.values.insert(a.values.end(), {{"val_loss", a.point.contains(tenth) ? 1.5 : 2.0},
                                     {"val_accuracy", a.point.contains(tenth) ? 0.75 : 0.5}});
  trials[9].status = Status::diverged;
  const Judging how{.rate = 0.5, .planned_claims = {{"more, is better", "less is"}}};
  const std::vector<JudgedClaim> claims = judge({{"more, is better", "a paper", higher("train_loss", tenth, zero)},
                                                 {"less is", "", lower("train_loss", tenth, zero).at({{"depth", 7}})},
                                                 {"late", "", lower("val_loss", tenth, zero).by_at_least(0.25)}},
                                                trials, how);
  CHECK(
      claims_csv(claims) ==
      fmt::format(
          "claim,source,verdict,{},measure,margin,at,overall,post_hoc,lr_first,lr_second,val_loss,val_accuracy\n"
          "\"more, is better\",a paper,agree,10,0,10,1,0,0.25,0.25,0.25,{},20,{},at this rate,1,,train_loss,,,agree,no,"
          "0.5,0.5,-0.5,0.25\n"
          "less is,,undecided,0,0,0,0,0,,,,1,,,,,,train_loss,,,undecided,no,,,,\n"
          "late,,agree,9,1,10,1,0,-0.5,-0.5,-0.5,{},20,{},at this rate,,,val_loss,-0.25,,agree,yes,0.5,0.5,,0.25\n",
          fmt::join(difference_columns, ","), claims[0].results[0].difference.evidence,
          claims[0].results[0].difference.at_all_rates, claims[2].results[0].difference.evidence,
          claims[2].results[0].difference.at_all_rates));
  CHECK_THAT(claims[0].why(),
             contains("; val_loss lower by 0.5 (0.5 to 0.5); val_accuracy higher by 0.25 (0.25 to 0.25)"));
  CHECK(result_of(lower("ratio", tenth, zero), trials, how).others.empty());
  CHECK_THAT(about_claims({claims[0], claims[1]}, how),
             contains("1 comparison of claims is one family. If nothing differs, the chance of any wrong verdict of "
                      "order is at most 5 %, whenever the study stops."));
  CHECK(about_claims({}, {}).empty());
}

TEST_CASE("removing all trials of another arm changes no bit of the evidence of a claim") {
  // fmt writes enough digits to tell any two numbers apart.
  const auto text_of = [](const ClaimResult& r) {
    const auto& [d, m, u] = std::tie(r.difference, r.difference.median, r.difference.duel);
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", u.wins, u.losses, u.seeds, u.failed_first, u.failed_second,
                       m.value, m.low.value_or(0), m.high.value_or(0), d.evidence, d.at_all_rates, d.equality);
  };
  std::mt19937_64 g(61);
  const auto values = [&](std::size_t method) {
    Outcomes all = by_seed(-static_cast<double>(method));
    for (double& y : all) y = g() % 20 == 0 ? infinity : y + std::normal_distribution<double>()(g);
    return all;
  };
  const std::vector<Point> cells{zero, tenth, {{"epsilon", 0.2}}, {{"epsilon", 0.3}}};
  int compared = 0;
  for (int study = 0; study < 200; ++study) {
    std::vector<TrialResult> trials, neighbours;
    std::vector<Claim> claims;
    Judging how{.own_rates = true, .seeds = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      how.rates.push_back({.cell = cells[i]});
      trials = trials + arm(cells[i], values(i));
      for (const int step : {-2, -1, 1, 2})
        if (g() % 4 > 0) neighbours = neighbours + neighbour(cells[i], step, values(i));
      for (std::size_t j = 0; j < i; ++j)
        claims.push_back({"", "", (j % 2 ? higher : lower)("loss", cells[i], cells[j])});
    }
    for (TrialResult& a : trials) a.status = g() % 50 == 0 ? Status::failed : a.status;
    const std::vector<JudgedClaim> all = judge(claims, trials, how, neighbours);
    for (const Point& removed : cells) {
      const auto rest = [&](std::vector<TrialResult> some) {
        std::erase_if(some, [&](const TrialResult& a) { return a.point.contains(removed); });
        return some;
      };
      const std::vector<JudgedClaim> without = judge(claims, rest(trials), how, rest(neighbours));
      for (std::size_t i = 0; i < claims.size(); ++i)
        if (!without[i].results.empty()) {
          if (text_of(all[i].results.at(0)) != text_of(without[i].results[0])) FAIL(study << ", " << i);
          ++compared;
        }
    }
  }
  CHECK(compared == 200 * 4 * 3);
}

TEST_CASE("a claim refuses amounts and comparisons without a meaning") {
  const auto refuses = [](auto&& make, const std::string& words) {
    CHECK_THAT(error_of(make), contains("[claim] " + words));
  };
  for (const double wrong : {0.0, -1.0, infinity, not_a_number}) {
    const std::string got = fmt::format("above 0 for loss, got {}", wrong);
    refuses([&] { not_higher("loss", tenth, zero, wrong); }, "expected a margin " + got);
    refuses([&] { not_lower("loss", tenth, zero, wrong); }, "expected a margin " + got);
    refuses([&] { comparison.by_at_least(wrong); }, "expected by_at_least() of an amount " + got);
    refuses([&] { comparison.equal_within(wrong); }, "expected equal_within() of an amount " + got);
  }
  for (const auto& [c, of] : {std::pair(above("loss", 1, zero), "above() or below(): change their constant instead"),
                              {not_lower("loss", tenth, zero, 1), "a comparison with a margin"}}) {
    const std::string got = fmt::format("of lower() or higher() for loss, got it of {}", of);
    refuses([&] { c.by_at_least(1); }, "expected by_at_least() " + got);
    refuses([&] { c.equal_within(1); }, "expected equal_within() " + got);
  }
}
