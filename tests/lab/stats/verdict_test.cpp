#include "experiments/lab/stats/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

const Judging against_pre{.chance = chance_of_classes(10), .control = "pre"};

const Standing& standing(const Condition& condition, const std::string& method) {
  return *std::ranges::find(condition.standings, method, &Standing::method);
}

const Difference& against_control(const Condition& condition, const std::string& method) {
  for (const JudgedPair& pair : condition.against_control)
    if (condition.standings[pair.first].method == method) return pair.difference;
  FAIL("no comparison of " + method + " with the control");
  throw 0;
}

// The sentence about the deepest condition.
std::string verdict_of(const std::vector<TrialResult>& trials, const Judging& how = against_pre) {
  return sentence(conditions_of(trials, how).back(), how);
}

// Trials of a method at seeds from 0 whose mean loss is `loss`, and whose losses vary more than methods differ.
void add_trials(std::vector<TrialResult>& trials, const std::string& method, std::int64_t depth, double loss,
                std::uint64_t seeds = 10, double lr = 1e-3) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    trials.push_back(trial(method, depth, seed,
                           loss + 0.1 * (static_cast<double>(seed) - 0.5 * static_cast<double>(seeds - 1)), lr));
}

// Five methods at depth 48. rezero is the best, post stays near chance, and fixup diverges.
std::vector<TrialResult> five_methods() {
  std::vector<TrialResult> trials;
  for (const auto& [method, loss] : {std::pair("post", 2.75), {"pre", 1.25}, {"rezero", 0.75}, {"skipinit", 1.25}})
    add_trials(trials, method, 48, loss);
  for (std::uint64_t seed = 0; seed < 10; ++seed) trials.push_back(dead("fixup", 48, seed, 7));
  for (TrialResult& t : trials)
    if (t.method == "skipinit") t.values[0].second += t.seed() % 2 == 0 ? -0.25 : 0.25;
  return trials;
}

}  // namespace

TEST_CASE("a condition compares each method with the control and marks methods near chance or diverged") {
  const Condition found = conditions_of(five_methods(), against_pre).at(0);
  CHECK((found.depth == 48 && found.has_control && !found.rate && found.shared_rate == 1e-3));
  std::map<std::string, std::string> words;
  for (const auto& [first, second, difference] : found.against_control) {
    CHECK(second == 0);
    words[found.standings[first].method] = verdict_words(difference);
  }
  CHECK(words == std::map<std::string, std::string>{
                     {"post", "worse"}, {"rezero", "better"}, {"skipinit", "no verdict"}, {"fixup", "worse"}});
  std::vector<std::string> methods;  // the control comes first
  for (const Standing& s : found.standings) methods.push_back(s.method);
  CHECK(methods == std::vector<std::string>{"pre", "post", "rezero", "skipinit", "fixup"});
  const Standing &rezero = standing(found, "rezero"), &post = standing(found, "post"),
                 &fixup = standing(found, "fixup");
  CHECK((rezero.loss.mean == Approx(0.75) && rezero.trained == 10 && !rezero.none_trained && !rezero.near_chance));
  CHECK((post.loss.n == 10 && post.trained == 0 && post.none_trained && post.near_chance));
  CHECK((fixup.loss.n == 0 && fixup.diverged == 10 && fixup.seeds == 10 && !fixup.near_chance));
}

TEST_CASE("all pairs have evidence and no verdict, also without the control") {
  for (const char* control : {"pre", "absent"}) {
    const Condition found = conditions_of(five_methods(), {.chance = chance_of_classes(10), .control = control}).at(0);
    CHECK(found.has_control == (found.against_control.size() == 4));
    CHECK(found.pairs.size() == 10);
    int strong = 0;
    for (const JudgedPair& pair : found.pairs) {
      const Difference& d = pair.difference;
      CHECK((d.better == Side::none && d.lost == Side::none && !d.equal && d.wanted.empty() && std::isnan(d.needs)));
      strong += d.evidence > 100;
    }
    CHECK(strong == 8);  // but for pre against skipinit and post against fixup
  }
}

TEST_CASE("conditions are sorted by depth and rate, and each one has a family of its own") {
  std::vector<TrialResult> trials;
  for (const double lr : {1e-2, 1e-3})
    for (const char* method : {"a", "pre"}) add_trials(trials, method, 48, 1, 10, lr);
  add_trials(trials, "b", 48, 1, 10, 1e-2);
  for (const char* method : {"pre", "a"}) add_trials(trials, method, 6, 1, 10, 1e-2);
  const std::vector<Condition> found = conditions_of(trials, against_pre);
  REQUIRE(found.size() == 3);
  const auto place = [&](std::size_t i) { return std::pair(found[i].depth, found[i].rate.value_or(0)); };
  CHECK((place(0) == std::pair(6L, 1e-2) && place(1) == std::pair(48L, 1e-3) && place(2) == std::pair(48L, 1e-2)));
  CHECK((against_control(found[1], "a").family == 1 && against_control(found[1], "a").needs == Approx(20)));
  CHECK((against_control(found[2], "a").family == 2 && against_control(found[2], "a").needs == Approx(40)));
}

TEST_CASE("methods at their own rates form one condition for each depth, and verdicts want neighbours") {
  std::vector<TrialResult> trials;
  add_trials(trials, "a", 6, 0.7, 10, 1e-3), add_trials(trials, "pre", 6, 1, 10, 1e-2);
  Judging how = against_pre;
  how.own_rates = true;
  for (const char* method : {"a", "pre"}) how.rates.push_back({.cell = {{"gate", method}, {"depth", 6}}});
  const std::vector<Condition> found = conditions_of(trials, how);
  REQUIRE(found.size() == 1);
  CHECK((!found[0].rate && !found[0].shared_rate));
  CHECK((standing(found[0], "a").rate == 1e-3 && standing(found[0], "pre").rate == 1e-2));
  const Difference& d = against_control(found[0], "a");
  CHECK((d.better == Side::none && d.lost == Side::second && d.wanted == std::vector{-1, 1}));
  CHECK(standing(found[0], "pre").cell == Point{{"gate", "pre"}, {"depth", 6}});
  CHECK(verdict_of(trials, how) ==
        "At depth 6, a trained best, to a training loss of 0.700 ± 0.217 (n = 10) at lr 0.001. Against pre: no verdict "
        "on a (10:0).");
  how.rates[0].blind = "stayed near chance at 0.001";
  CHECK(verdict_of(trials, how).ends_with("Against pre: a (10:0): cannot be judged."));
  CHECK_THAT(comparisons_csv(found),
             contains("\n6,,control,a,pre,no verdict,10,0,10,0,0,-0.3") && contains(",not trained,1,,0.001,0.01\n"));
}

TEST_CASE("the verdict in words") {
  CHECK(verdict_of(five_methods()) ==
        "At depth 48 and lr 0.001, rezero trained best, to a training loss of 0.750 ± 0.217 (n = 10); post: stayed "
        "near chance (ln 10 = 2.303); fixup: 10 of 10 diverged. Against pre: rezero (10:0): better; no verdict on "
        "skipinit (5:5); post (0:10) and fixup (0:10): worse.");
  CHECK(verdict_of({trial("a", 6, 0, 0.5), trial("pre", 6, 0, 1.5)}) ==
        "At depth 6 and lr 0.001, a trained best, to a training loss of 0.500 (n = 1).");
  CHECK(verdict_of({trial("a", 6, 0, 0.5)}) ==
        "At depth 6 and lr 0.001, a trained, to a training loss of 0.500 (n = 1).");
  CHECK(verdict_of({trial("a", 0, 0, 5)}, {}) ==
        "Among all trials at lr 0.001, a trained, to a training loss of 5.000 (n = 1).");
  CHECK(
      verdict_of({dead("a", 6, 0, 3), dead("a", 6, 1, 3), trial("b", 6, 0, 2.29), dead("pre", 6, 0, 3),
                  dead("pre", 6, 1, 3)}) ==
      "At depth 6 and lr 0.001, no method trained; pre and a: 2 of 2 diverged; b: stayed near chance (ln 10 = 2.303).");
  // A method that lost a seed ranks below a method that lost none.
  CHECK_THAT(verdict_of({trial("a", 6, 0, 0.5), dead("a", 6, 1, 9), trial("b", 6, 0, 0.7), trial("b", 6, 1, 0.8)}),
             contains("b trained best, ") && contains("; a: 1 of 2 diverged."));
  CHECK_THAT(verdict_of({trial("a", 6, 0, 0.5), trial("a", 6, 1, 2.3)}), contains("(n = 1); a: 1 of 2 did not train."));
}

TEST_CASE("trials stopped as hopeless are lost and trials that ended in an error do not count") {
  std::vector<TrialResult> trials;
  for (const auto& [method, loss] : {std::pair("pre", 1.0), {"a", 1.1}, {"b", 1.0}, {"c", 1.0}})
    add_trials(trials, method, 6, loss);
  for (TrialResult& t : trials)
    if ((t.method == "a" && t.seed() < 9) || t.method == "c") t.status = Status::hopeless, t.values.clear();
  for (TrialResult& t : trials)
    if (t.method == "b") t.status = Status::failed;
  const Condition found = conditions_of(trials, against_pre).at(0);
  const Standing &a = standing(found, "a"), &b = standing(found, "b");
  CHECK((a.stopped == 9 && a.seeds == 10 && a.trained == 1 && b.stopped == 0 && b.seeds == 0 && b.loss.n == 0));
  CHECK(against_control(found, "a").better == Side::second);
  CHECK(against_control(found, "b").duel.seeds == 0);
  CHECK_THAT(sentence(found, against_pre),
             contains("; a: 9 of 10 hopeless; b: ended without a training loss; c: 10 of 10 hopeless. Against pre: "));
}

TEST_CASE("smoothed labels do not make a loss near chance and the losses stay those of the files") {
  // 2.2 is 96 % of chance, but 35 % of the way from an entropy of 2.1439 to chance. 2.297 is 97 % of the way.
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 2; ++seed)
    for (const auto& [method, loss] : {std::pair("pre", 2.2), {"post", 2.297}})
      trials.push_back(trial_of(method, 6, seed, {{"train_loss", loss}, {"target_entropy", 2.1439}}));
  const auto trained = [&] {
    return std::pair(has_trained(trials[0], std::log(10)), has_trained(trials[1], std::log(10)));
  };
  const auto near = [&](std::size_t group) { return near_chance(group_trials(trials)[group], against_pre.chance); };
  CHECK(trained() == std::pair(true, false));
  const Condition found = conditions_of(trials, against_pre).at(0);
  CHECK((standing(found, "pre").trained == 2 && standing(found, "pre").loss.mean == 2.2));
  CHECK((standing(found, "post").near_chance && standing(found, "post").loss.mean == 2.297));
  CHECK((!near(0) && near(1)));
  CHECK(near_chance_rule(trials, against_pre.chance) ==
        "mean training loss at or above 95 % of the way from target_entropy to ln 10 = 2.303");
  // Trials without the value have hard labels.
  for (TrialResult& t : trials) t.values.pop_back();
  CHECK(trained() == std::pair(false, false));
  CHECK((standing(conditions_of(trials, against_pre).at(0), "pre").near_chance && near(0)));
  CHECK(near_chance_rule(trials, against_pre.chance) == "mean training loss at or above 95 % of ln 10 = 2.303");
  // Without classes, no loss is near chance. A trial without a training loss trained if it ended ok.
  CHECK(has_trained(trials[1], Judging{}.chance.loss));
  CHECK(has_trained(trial_of("a", 6, 0, {}), std::log(10)));
  trials[1].status = Status::failed;
  CHECK_FALSE(has_trained(trials[1], Judging{}.chance.loss));
}

TEST_CASE("comparisons.csv has a row for each pair in both families") {
  std::vector<TrialResult> trials;
  for (const auto& [method, loss] : {std::pair("a", 1.0), {"pre", 2.0}, {"x", 2.0}})
    add_trials(trials, method, 6, loss);
  Judging how{.control = "pre"};
  const std::string csv = comparisons_csv(conditions_of(trials, how));
  CHECK(std::ranges::count(csv, '\n') == 1 + 2 + 3);
  CHECK_THAT(csv, contains("depth,lr,family,first,second,verdict,wins,losses,seeds,failed_first,failed_second,"
                           "difference,low,high,evidence,needs,at_neighbours,stands,equality,obstacle,lr_first,"
                           "lr_second\n6,0.001,control,a,pre,better,10,0,10,0,0,-1,-1,") &&
                      contains("\n6,0.001,control,x,pre,equal within 0.05,0,0,10,0,0,0,0,0,1,20,,,251.") &&
                      contains("\n6,0.001,pairs,pre,a,no verdict,0,10,10,0,0,1,"));
  // Without an axis of learning rates, the rows have the rate of all trials if it is known.
  for (TrialResult& t : trials) t.point = t.point.without("lr");
  CHECK_THAT(comparisons_csv(conditions_of(trials, how)), contains("\n6,,control,a,pre,better,"));
  how.rate = 0.25;
  CHECK_THAT(comparisons_csv(conditions_of(trials, how)), contains("\n6,0.25,control,a,pre,better,"));
}

TEST_CASE("the verdict of a claim replaces the verdict of its pair in tables and files") {
  const std::vector<TrialResult> trials = five_methods();
  Difference claim;
  claim.duel = {.seeds = 3, .wins = 3, .differences = {-7, -8, -9}};
  claim.median = median_of(claim.duel.differences), claim.better = Side::first;
  const auto claimed = [&](const char* first, const char* second, std::int64_t depth) {
    return conditions_of(trials, against_pre,
                         {{.first = {{"gate", first}, {"depth", depth}},
                           .second = {{"gate", second}, {"depth", depth}},
                           .difference = claim}})[0];
  };
  const Condition with = claimed("skipinit", "pre", 48), turned = claimed("pre", "skipinit", 48);
  CHECK(verdict_words(against_control(with, "skipinit")) == "better");
  CHECK(verdict_words(against_control(with, "rezero")) == "better");
  CHECK_THAT(comparisons_csv({with}), contains("control,skipinit,pre,better,3,0,3,0,0,-8,") &&
                                          contains("pairs,pre,skipinit,worse,0,3,3,0,0,8,"));
  CHECK_THAT(comparisons_csv({turned}), contains("control,skipinit,pre,worse,0,3,3,0,0,8,") &&
                                            contains("pairs,pre,skipinit,better,3,0,3,0,0,-8,"));
  CHECK_THAT(sentence(with, against_pre), contains("rezero (10:0) and skipinit (3:0): better"));
  // A claim about other methods than the control, or at another depth, does not change the comparison.
  const std::string without = comparisons_csv(conditions_of(trials, against_pre));
  CHECK_THAT(comparisons_csv({claimed("rezero", "skipinit", 48)}), contains("pairs,rezero,skipinit,better,3,0,3,"));
  CHECK(comparisons_csv({claimed("skipinit", "pre", 12)}) == without);
}
