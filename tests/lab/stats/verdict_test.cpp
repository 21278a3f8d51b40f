#include "experiments/lab/stats/verdict.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "experiments/lab/stats/reference.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

const Judging against_pre{.chance = chance_of_classes(10), .control = "pre"};

const Standing& standing(const Condition& condition, const std::string& method) {
  return *std::ranges::find(condition.standings, method, &Standing::method);
}

// The order of a method's losses compared with the losses of the control.
Difference::Order order(const Condition& condition, const std::string& method) {
  for (const JudgedPair& pair : condition.against_control)
    if (condition.standings[pair.first].method == method) return pair.difference.order;
  FAIL("no comparison of " + method + " with the control");
  return {};
}

Difference::Training training(const Condition& condition, const std::string& method) {
  for (const JudgedPair& pair : condition.against_control)
    if (condition.standings[pair.first].method == method) return pair.difference.training;
  FAIL("no comparison of " + method + " with the control");
  return {};
}

// The sentence about the deepest condition.
std::string verdict_of(const std::vector<TrialResult>& trials, const Judging& how = against_pre) {
  return sentence(conditions(trials, how).back(), how);
}

// Five methods at depth 48. rezero is the best, post stays near chance, and fixup diverges.
std::vector<TrialResult> five_methods(std::uint64_t seeds = 7) {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const double common = 0.1 * static_cast<double>(seed), own = seed == 1 ? 0.01 : seed == 3 ? -0.01 : 0;
    trials.push_back(trial("post", 48, seed, 2.30 + common));
    trials.push_back(trial("pre", 48, seed, 1.00 + common));
    trials.push_back(trial("rezero", 48, seed, 0.50 + common + own));
    trials.push_back(trial("skipinit", 48, seed, 1.00 + common - own));
    trials.push_back(dead("fixup", 48, seed, 7));
  }
  return trials;
}

// Two methods at depth 6, with six seeds each. a ends lower than b.
std::vector<TrialResult> two_methods() {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    for (double base : {0.5, 1.0})
      trials.push_back(trial(base < 1 ? "a" : "b", 6, seed,
                             base + 0.01 * static_cast<double>(seed) + (seed == 1 ? 0.01 : 0) * base));
  return trials;
}

// Depths 6 and 48. Methods a and d train at neither depth, b trains only at depth 6, and f has no trials at depth 6.
std::vector<TrialResult> two_depths() {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    const double own = 0.001 * static_cast<double>(seed * seed % 7);
    for (const auto& [gate, shallow, deep] :
         {std::tuple("a", 2.3, 2.3), {"b", 0.5, 2.3}, {"pre", 0.4, 1.0}, {"e", 0.4, 0.6}}) {
      trials.push_back(trial(gate, 6, seed, shallow + own));
      trials.push_back(trial(gate, 48, seed, deep - own * deep));
    }
    trials.push_back(dead("d", 6, seed, 3));
    trials.push_back(trial("d", 48, seed, 2.3));
    trials.push_back(trial("f", 48, seed, 2.3));
  }
  return trials;
}

// Six seeds at depth 6. Method a is stopped as hopeless at five seeds, and method b fails at all seeds.
std::vector<TrialResult> hopeless_and_failed() {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    trials.push_back(trial("pre", 6, seed, 1.0));
    TrialResult stopped = trial("a", 6, seed, 0.1), failed = trial("b", 6, seed, 0.1);
    if (seed > 0) stopped.status = Status::hopeless, stopped.values.clear();
    failed.status = Status::failed, failed.values.clear();
    trials.push_back(stopped);
    trials.push_back(failed);
  }
  return trials;
}

}  // namespace

TEST_CASE("a condition compares each method with the control and marks methods near chance or diverged") {
  const Condition condition = conditions(five_methods(), against_pre).back();
  CHECK(condition.depth == 48);
  CHECK(condition.has_control);
  CHECK(condition.standings[0].method == "pre");
  CHECK(standing(condition, "rezero").loss.mean == Approx(0.8));
  CHECK(standing(condition, "rezero").trained == 7);
  CHECK(order(condition, "rezero") == Difference::Order::lower);
  CHECK(training(condition, "rezero") == Difference::Training::undecided);
  // Losses of a method that never trained are not compared, but that it trains less often is.
  CHECK(order(condition, "post") == Difference::Order::undecided);
  CHECK(training(condition, "post") == Difference::Training::less_often);
  CHECK(training(condition, "fixup") == Difference::Training::less_often);
  CHECK(order(condition, "skipinit") == Difference::Order::undecided);
  CHECK(order(condition, "fixup") == Difference::Order::undecided);
  CHECK(standing(condition, "post").near_chance);
  CHECK_FALSE(standing(condition, "pre").near_chance);
  CHECK(standing(condition, "fixup").diverged == 7);
  CHECK(standing(condition, "fixup").loss.n == 0);
  // Six seeds decide one method that never trains, and seven decide two.
  const Condition six = conditions(five_methods(6), against_pre).back();
  CHECK(training(six, "fixup") == Difference::Training::undecided);
}

TEST_CASE("without the control all pairs of methods are compared") {
  std::vector<TrialResult> trials = two_methods();
  const Condition two = conditions(trials, against_pre).back();
  CHECK_FALSE(two.has_control);
  CHECK(two.against_control.empty());
  REQUIRE(two.pairs.size() == 1);
  CHECK(two.pairs[0].difference.order == Difference::Order::lower);
  trials.push_back(trial("c", 6, 0, 0.52));
  const Condition three = conditions(trials, against_pre).back();
  REQUIRE(three.pairs.size() == 3);
  CHECK(three.pairs[1].difference.order == Difference::Order::undecided);  // a and c have one pair
}

TEST_CASE("one seed has no interval to rank by") {
  const Condition condition = conditions({trial("a", 6, 0, 0.5), trial("b", 6, 0, 1.5)}, against_pre).back();
  CHECK_FALSE(standing(condition, "a").loss.half_width);
  CHECK(condition.pairs.at(0).difference.order == Difference::Order::undecided);
}

TEST_CASE("a failed trial has no outcome") {
  TrialResult failed = dead("a", 6, 0, 3);
  failed.status = Status::failed;
  failed.values.clear();
  const Standing s = conditions({failed}, against_pre).back().standings.at(0);
  CHECK(s.seeds == 0);
  CHECK(s.diverged == 0);
  CHECK(s.loss.n == 0);
}

TEST_CASE("a method that trains at no depth is not compared at the larger depths") {
  const std::vector<TrialResult> trials = two_depths();
  const std::vector<Condition> found = conditions(trials, against_pre);
  REQUIRE(found.size() == 2);
  CHECK_FALSE(standing(found[0], "a").untested);
  for (const char* method : {"a", "b", "d", "f"}) CHECK(standing(found[1], method).near_chance);
  for (const char* method : {"a", "d"}) {
    CHECK(standing(found[1], method).untested);
    CHECK(standing(found[1], method).shallowest == 6);
  }
  for (const char* method : {"b", "e", "f", "pre"}) CHECK_FALSE(standing(found[1], method).untested);
  CHECK(standing(found[1], "f").shallowest == 48);
  CHECK(found[1].against_control.size() == 3);
  CHECK(order(found[1], "e") == Difference::Order::lower);
  CHECK(training(found[1], "b") == Difference::Training::less_often);
  CHECK(training(found[1], "f") == Difference::Training::less_often);
  CHECK(found[1].pairs.size() == 6);
  // If the control is near chance at its smallest depth as well, no method is compared with the control.
  CHECK(conditions(trials, {.chance = chance_of_classes(10), .control = "a"})[1].against_control.empty());
  // Each learning rate is judged separately: with 1e-2, method a trains at depth 6.
  const std::vector<TrialResult> rates{trial("a", 6, 0, 2.3),        trial("a", 48, 0, 2.3),
                                       trial("b", 6, 0, 0.5),        trial("a", 6, 0, 0.5, 1e-2),
                                       trial("a", 48, 0, 2.3, 1e-2), trial("b", 48, 0, 0.5)};
  const Condition last = conditions(rates, against_pre).back();
  CHECK(last.rate == 1e-2);
  CHECK(standing(last, "a").near_chance);
  CHECK_FALSE(standing(last, "a").untested);
}

TEST_CASE("trials stopped as hopeless count as lost and failed trials do not count") {
  const Condition condition = conditions(hopeless_and_failed(), against_pre).back();
  CHECK(standing(condition, "a").stopped == 5);
  CHECK(standing(condition, "a").seeds == 6);
  CHECK(standing(condition, "b").seeds == 0);
  CHECK(standing(condition, "b").stopped == 0);
  CHECK(order(condition, "a") == Difference::Order::undecided);
}

TEST_CASE("the verdict in words") {
  const std::string five = verdict_of(five_methods());
  INFO(five);
  CHECK_THAT(five, contains("At depth 48 and lr 0.001, rezero trained best, to a training loss of 0.800 ± 0.198") &&
                       contains("; post stayed near chance (ln 10 = 2.303); fixup diverged. Against pre: rezero is "
                                "lower; post and fixup train less often; no verdict on skipinit"));
  CHECK_THAT(verdict_of(five_methods(3)), contains("post (about ") && contains("fixup (about 8 seeds would decide)"));
  std::vector<TrialResult> trials = two_methods();
  CHECK_THAT(verdict_of(trials), contains("a trained best, to a training loss of 0.526 ± 0.0") &&
                                     contains("(n = 6); it differs from the other. 6 of 6 seeds of each method "
                                              "trained; up to 39 % may still fail."));
  trials.push_back(trial("c", 6, 0, 0.6));
  CHECK_THAT(verdict_of(trials), contains("no verdict between it and c."));
  CHECK(verdict_of({trial("a", 6, 0, 0.5), trial("b", 6, 0, 1.5)}) ==
        "At depth 6 and lr 0.001, a trained best, to a training loss of 0.500 (n = 1); one seed gives no interval to "
        "rank by.");
  CHECK(verdict_of({trial("a", 6, 0, 0.5)}) ==
        "At depth 6 and lr 0.001, a trained, to a training loss of 0.500 (n = 1).");
  CHECK(verdict_of({dead("a", 6, 0, 3), trial("b", 6, 0, 2.29)}) ==
        "At depth 6 and lr 0.001, no method trained: b stayed near chance (ln 10 = 2.303); a diverged.");
  TrialResult failed = dead("a", 6, 0, 3);
  failed.status = Status::failed;
  CHECK(verdict_of({failed}) == "At depth 6 and lr 0.001, no method trained: a ended without a training loss.");
  CHECK_THAT(verdict_of(two_depths()),
             contains("; b and f stayed near chance (ln 10 = 2.303); a and d stayed near chance (ln 10 = 2.303), and "
                      "did not train at depth 6 "
                      "either, so nothing follows about depth. Against pre: e is lower; b and f train less often."));
  CHECK_THAT(verdict_of(two_depths(), {.chance = chance_of_classes(10), .control = "a"}), !contains("Against"));
  CHECK_THAT(
      verdict_of({trial("a", 6, 0, 0.5), trial("a", 48, 0, 2.3)}),
      contains(
          "At depth 48 and lr 0.001, no method trained: a stayed near chance (ln 10 = 2.303), and trained at a smaller "
          "depth."));
  CHECK_THAT(verdict_of(hopeless_and_failed()),
             contains("; a was stopped as hopeless in 5 of 6 seeds; b ended without a training loss. Against pre: "));
  // A method that lost a seed ranks below a method that lost none.
  CHECK_THAT(verdict_of({trial("a", 6, 0, 0.5), dead("a", 6, 1, 9), trial("b", 6, 0, 0.7), trial("b", 6, 1, 0.8)}),
             contains("b trained best, ") && contains("; a diverged in 1 of 2 seeds."));
  CHECK(verdict_of({trial("a", 6, 0, 5.0)}, {}) ==
        "At depth 6 and lr 0.001, a trained, to a training loss of 5.000 (n = 1).");
  CHECK_THAT(verdict_of({trial("a", 6, 0, 0.4)}, {.chance = chance_of_classes(10), .own_rates = true}),
             contains("a trained, to a training loss of 0.400 (n = 1) at lr 0.001"));
}

TEST_CASE("methods at their own learning rates form one condition for each depth") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    trials.push_back(trial("a", 6, seed, 0.5, 1e-3));
    trials.push_back(trial("b", 6, seed, 0.4, 1e-2));
  }
  const std::vector<Condition> found = conditions(trials, {.chance = chance_of_classes(10), .own_rates = true});
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].rate);
  CHECK(standing(found[0], "a").rate == 1e-3);
  CHECK(standing(found[0], "b").rate == 1e-2);
}

TEST_CASE("smoothed labels do not make a loss near chance and the losses stay those of the files") {
  // 2.2 is 96 % of chance, but 35 % of the way from an entropy of 2.1439 to chance. 2.297 is 97 % of the way.
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 2; ++seed)
    for (const auto& [method, loss] : {std::pair("pre", 2.2), {"post", 2.297}})
      trials.push_back(trial_of(method, 6, seed,
                                {{"train_loss", loss + 1e-4 * static_cast<double>(seed)}, {"target_entropy", 2.1439}}));
  const Condition found = conditions(trials, against_pre).at(0);
  CHECK(standing(found, "pre").trained == 2);
  CHECK(standing(found, "pre").loss.mean == Approx(2.20005));
  CHECK((standing(found, "post").none_trained && standing(found, "post").near_chance));
  CHECK(standing(found, "post").loss.mean == Approx(2.29705));
  CHECK(which_trained(trials, against_pre) == std::vector<bool>{true, false, true, false});
  const std::vector<TrialGroup> groups = group_trials(trials);
  CHECK_FALSE(near_chance(groups[0], against_pre.chance));
  CHECK(near_chance(groups[1], against_pre.chance));
  CHECK(near_chance_rule(trials, against_pre.chance) ==
        "mean training loss at or above 95 % of the way from target_entropy to ln 10 = 2.303");
  // Trials without the value have hard labels.
  for (TrialResult& t : trials) t.values.pop_back();
  CHECK(standing(conditions(trials, against_pre).at(0), "pre").near_chance);
  CHECK(which_trained(trials, against_pre) == std::vector<bool>(4, false));
  CHECK(near_chance_rule(trials, against_pre.chance) == "mean training loss at or above 95 % of ln 10 = 2.303");
}

TEST_CASE("without classes no loss is near chance") {
  CHECK_FALSE(conditions({trial("a", 6, 0, 5.0)}, {}).at(0).standings.at(0).near_chance);
  CHECK(chance_of_classes(10).loss == Approx(std::log(10.0)));
}

TEST_CASE("comparisons.csv has a row for each pair in both families") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (const auto& [gate, base] : {std::pair("post", 1.0), {"pre", 2.0}, {"x", 2.0}, {"y", 2.0}})
      trials.push_back(trial(gate, 6, seed,
                             base + 0.1 * static_cast<double>(seed) + (seed == 0 && gate[1] == 'r' ? 0.01 : 0) +
                                 (seed == 1 && *gate == 'y' ? 0.01 : 0)));
  const std::string csv = comparisons_csv(conditions(trials, {.chance = chance_of_classes(20), .control = "pre"}));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 3 + 6);
  CHECK_THAT(csv, contains("\n6,0.001,control,post,pre,lower,undecided,-1.00") && contains(",3,3,3,3,,3,,\n") &&
                      contains("\n6,0.001,control,x,pre,undecided,undecided,-0.00333") &&
                      contains("\n6,0.001,pairs,pre,post,higher,") && contains("\n6,0.001,pairs,post,x,lower,"));
  // No rate is given, because all trials have the same rate.
  CHECK_FALSE(conditions(trials, {.chance = chance_of_classes(20), .control = "pre"}).front().rate);
  // Without an axis of learning rates, the rows have the rate of all trials if that rate is known.
  for (TrialResult& a : trials) a.point = a.point.without("lr");
  CHECK_THAT(comparisons_csv(conditions(trials, {.chance = chance_of_classes(20), .control = "pre", .rate = 0.25})),
             contains("\n6,0.25,control,post,pre,lower,"));
  CHECK_THAT(comparisons_csv(conditions(trials, {.chance = chance_of_classes(20), .control = "pre"})),
             contains("\n6,,control,post,pre,lower,"));
}

TEST_CASE("the verdict of a claim replaces the verdict of its pair in tables and files") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double noise = seed == 1 ? 0.2 : 0;
    for (const auto& [method, loss] : {std::pair("pre", 1.0), {"a", 0.8}, {"b", 0.9}, {"c", 1.1}})
      trials.push_back(trial(method, 24, seed, loss + noise * (loss - 0.9)));
  }
  const Judging how{.chance = chance_of_classes(10), .control = "pre"};
  const Difference claim{.order = Difference::Order::lower, .n = 3, .mean = -0.7, .low = -0.9, .high = -0.5};
  const auto condition = [&](const ClaimedPair& pair) { return conditions(trials, how, {pair}).front(); };
  const Condition without = conditions(trials, how).front();
  const Condition with = condition({.first = "b", .second = "pre", .depth = 24, .rate = 1e-3, .difference = claim});
  REQUIRE(with.against_control.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const bool claimed = with.standings[with.against_control[i].first].method == "b";
    CHECK(with.against_control[i].difference.mean == (claimed ? -0.7 : without.against_control[i].difference.mean));
  }
  CHECK_THAT(comparisons_csv({with}), contains("control,b,pre,lower,undecided,-0.7,-0.9,-0.5"));
  // A claim about the same two methods in the other order gives the same verdict with the sign reversed.
  const Condition turned = condition({.first = "pre", .second = "b", .depth = 24, .rate = 1e-3, .difference = claim});
  CHECK_THAT(comparisons_csv({turned}), contains("control,b,pre,higher,undecided,0.7,0.5,0.9"));
  CHECK(order(turned, "b") == Difference::Order::higher);
  // A claim at another depth does not change this condition.
  const Condition other = condition({.first = "b", .second = "pre", .depth = 12, .rate = 1e-3, .difference = claim});
  CHECK(comparisons_csv({other}) == comparisons_csv({without}));
}
