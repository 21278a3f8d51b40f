#include "experiments/lab/stats/verdict.h"

#include <cmath>
#include <tuple>

#include "experiments/lab/stats/reference.h"
#include "tests/lab/stats/trial_result.h"
#include "tests/support/catch.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

TrialResult trial(const std::string& gate, std::int64_t depth, std::uint64_t seed, double loss, double lr = 1e-3) {
  return trial_of(gate, depth, seed, {{"train_loss", loss}}, lr);
}

// Of the deepest condition.
std::string verdict_of(const std::vector<TrialResult>& trials, const Judging& how = {.classes = 10, .control = "pre"}) {
  return sentence(conditions(trials, how).back(), how);
}

}  // namespace

TEST_CASE("the verdict names the best, what is apart from the control, what stayed near chance and what diverged") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double common = 0.1 * static_cast<double>(seed), own = seed == 1 ? 0.01 : 0;
    trials.push_back(trial("post", 48, seed, 2.30 + common));
    trials.push_back(trial("pre", 48, seed, 1.00 + common));
    trials.push_back(trial("rezero", 48, seed, 0.50 + common + own));
    trials.push_back(trial("skipinit", 48, seed, 1.01 + common - own));
    trials.push_back(dead("fixup", 48, seed, 7));
  }
  const std::string text = verdict_of(trials);
  INFO(text);
  CHECK_THAT(text, contains("At depth 48, rezero trained best, to a training loss of 0.603 ± 0.2") &&
                       contains("; post stayed near chance (ln 10 = 2.303); fixup diverged. Against pre: rezero is "
                                "lower; post is higher; no verdict on ") &&
                       contains("skipinit (") && contains("seeds would decide)") &&
                       contains("fixup (about 7 seeds would decide)"));
}

TEST_CASE("without the control the best is compared with all others") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (double base : {0.5, 1.0})
      trials.push_back(trial(base < 1 ? "a" : "b", 6, seed,
                             base + 0.01 * static_cast<double>(seed) + (seed == 1 ? 0.01 : 0) * base));
  CHECK_THAT(verdict_of(trials), contains("a trained best, to a training loss of 0.512 ± 0.0") &&
                                     contains("(n = 3), apart from the other."));
  trials.push_back(trial("c", 6, 0, 0.52));
  CHECK_THAT(verdict_of(trials), contains("no verdict between it and c."));
}

TEST_CASE("one seed carries no ranking, and one method no comparison") {
  CHECK(verdict_of({trial("a", 6, 0, 0.5), trial("b", 6, 0, 1.5)}) ==
        "At depth 6, a trained best, to a training loss of 0.500 (n = 1); one seed gives no interval to rank by.");
  CHECK(verdict_of({trial("a", 6, 0, 0.5)}) == "At depth 6, a trained, to a training loss of 0.500 (n = 1).");
}

TEST_CASE("the verdict says when nothing trained") {
  CHECK(verdict_of({dead("a", 6, 0, 3), trial("b", 6, 0, 2.29)}) ==
        "At depth 6, no method trained: b stayed near chance (ln 10 = 2.303); a diverged.");
  TrialResult failed = dead("a", 6, 0, 3);
  failed.status = Status::failed;
  failed.values.clear();
  CHECK(verdict_of({failed}) == "At depth 6, no method trained: a ended without a training loss.");
}

TEST_CASE("a method that does not train when shallow says nothing about depth, and is not compared") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double own = 0.001 * static_cast<double>(seed * seed);
    for (const auto& [gate, shallow, deep] :
         {std::tuple("a", 2.3, 2.3), {"b", 0.5, 2.3}, {"pre", 0.4, 1.0}, {"e", 0.4, 0.6}}) {
      trials.push_back(trial(gate, 6, seed, shallow + own));
      trials.push_back(trial(gate, 48, seed, deep - own));
    }
    trials.push_back(dead("d", 6, seed, 3));
    trials.push_back(trial("d", 48, seed, 2.3));
    trials.push_back(trial("f", 48, seed, 2.3));  // never shallow
  }
  const Judging how{.classes = 10, .control = "pre"};
  const std::vector<Condition> found = conditions(trials, how);
  CHECK_THAT(sentence(found[0], how), contains("; a stayed near chance (ln 10 = 2.303); d diverged."));
  const std::string text = verdict_of(trials);
  INFO(text);
  CHECK_THAT(text,
             contains("; b and f stayed near chance (ln 10 = 2.303); a and d stayed near chance (ln 10 = 2.303), and "
                      "did not train at depth 6 "
                      "either, so that nothing follows about depth. Against pre: e is lower; b and f are higher."));
  CHECK(found[1].against_control.size() == 3);
  CHECK(found[1].pairs.size() == 6);
  // A control that did not train when shallow compares with nothing.
  const Judging by_a{.classes = 10, .control = "a"};
  CHECK(conditions(trials, by_a)[1].against_control.empty());
  CHECK_THAT(verdict_of(trials, by_a), !contains("Against"));
  // At another rate it may train.
  const std::vector<TrialResult> rates{trial("a", 6, 0, 2.3),        trial("a", 48, 0, 2.3),
                                       trial("b", 6, 0, 0.5),        trial("a", 6, 0, 0.5, 1e-2),
                                       trial("a", 48, 0, 2.3, 1e-2), trial("b", 48, 0, 0.5)};
  CHECK_THAT(verdict_of(rates), contains("At depth 48 and lr 0.01, no method trained: a stayed near chance (ln 10 = "
                                         "2.303), and trained at a smaller depth."));
}

TEST_CASE("trials that were stopped as hopeless count as lost, and failed ones not at all") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    trials.push_back(trial("pre", 6, seed, 1.0));
    TrialResult stopped = trial("a", 6, seed, 0.1), failed = trial("b", 6, seed, 0.1);
    if (seed > 0) stopped.status = Status::hopeless, stopped.values.clear();
    failed.status = Status::failed, failed.values.clear();
    trials.push_back(stopped);
    trials.push_back(failed);
  }
  const std::string text = verdict_of(trials);
  INFO(text);
  CHECK_THAT(
      text,
      contains("pre trained best, ") &&
          contains("; a was stopped as hopeless in 5 of 6 seeds; b ended without a training loss. Against pre: ") &&
          contains("no verdict on a ("));
}

TEST_CASE("the verdict tells of seeds that diverged beside a mean, and ranks them below those without") {
  const std::string text =
      verdict_of({trial("a", 6, 0, 0.5), dead("a", 6, 1, 9), trial("b", 6, 0, 0.7), trial("b", 6, 1, 0.8)});
  CHECK_THAT(text, contains("b trained best, ") && contains("; a diverged in 1 of 2 seeds."));
}

TEST_CASE("the best rate is chosen by some of the seeds, which are not judged") {
  const Judging how{.classes = 10, .choosing = {0, 1}};
  std::vector<TrialResult> trials;
  const double slow[] = {0.5, 0.5, 0.4, 0.6}, fast[] = {0.3, 0.4, 0.9, 0.8}, faster[] = {0.1, 0.1, 0.1, 0.1};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    trials.push_back(trial("a", 6, seed, slow[seed], 1e-3));
    trials.push_back(trial("a", 6, seed, fast[seed], 1e-2));
    trials.push_back(seed == 1 ? dead("a", 6, seed, 3, 1e-1)
                               : trial("a", 6, seed, faster[seed], 1e-1));  // the best, but one of two diverged
  }
  const std::vector<Condition> found = conditions(trials, how);
  REQUIRE(found.size() == 1);
  CHECK(found[0].standings[0].rate == 1e-2);
  CHECK(found[0].standings[0].losses == Outcomes{0.9, 0.8});
  // A rate of which nothing is known yet is no choice.
  std::vector<TrialResult> early{trial("a", 6, 2, 0.9, 1e-3), trial("a", 6, 3, 0.9, 1e-3)};
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    early.push_back(seed < 1 ? dead("a", 6, seed, 3, 1e-2) : trial("a", 6, seed, 0.5, 1e-2));
  CHECK(conditions(early, how)[0].standings[0].rate == 1e-2);
  // One seed chooses for itself.
  const std::vector<TrialResult> one{trial("a", 6, 0, 2.0, 1e-4), trial("a", 6, 0, 0.4, 1e-3),
                                     trial("b", 6, 0, 0.5, 1e-3)};
  CHECK(conditions(one, {.classes = 10, .choosing = {0}}).empty());  // as long as there may be others
  CHECK_THAT(verdict_of(one, {.classes = 10, .choosing = {0}, .no_others = true}),
             contains("a trained best, to a training loss of 0.400 (n = 1) at lr 0.001"));
  // As long as only those that choose have ended, nothing is judged.
  std::vector<TrialResult> choice;
  for (const TrialResult& a : trials)
    if (a.seed() < 2) choice.push_back(a);
  CHECK(conditions(choice, how).empty());
}

TEST_CASE("a third of the seeds chooses, the smallest, and one at least") {
  CHECK(choosing_seeds({7}) == std::set<std::int64_t>{7});
  CHECK(choosing_seeds({3, 2}) == std::set<std::int64_t>{2});
  CHECK(choosing_seeds({0, 1, 2, 3, 4}) == std::set<std::int64_t>{0});
  CHECK(choosing_seeds({5, 4, 3, 2, 1, 0}) == std::set<std::int64_t>{0, 1});
}

TEST_CASE("without classes nothing is near chance") {
  CHECK(verdict_of({trial("a", 6, 0, 5.0)}, {}) == "At depth 6, a trained, to a training loss of 5.000 (n = 1).");
  CHECK(chance_loss(10) == Approx(std::log(10.0)));
}

TEST_CASE("comparisons.csv has a row for each pair, in both families") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (const auto& [gate, base] : {std::pair("post", 1.0), {"pre", 2.0}, {"x", 2.0}})
      trials.push_back(
          trial(gate, 6, seed, base + 0.1 * static_cast<double>(seed) + (seed == 0 && gate[1] == 'r' ? 0.01 : 0)));
  const std::string csv = comparisons_csv(conditions(trials, {.classes = 10, .control = "pre"}));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 2 + 3);
  CHECK_THAT(csv, contains("\n6,0.001,control,post,pre,lower,-1.00") &&
                      contains("\n6,0.001,control,x,pre,undecided,-0.00333") &&
                      contains("\n6,0.001,pairs,pre,post,higher,") && contains("\n6,0.001,pairs,post,x,lower,"));
  CHECK_FALSE(conditions(trials, {.classes = 10, .control = "pre"}).front().rate);  // nothing to say in sentences
  // Without an axis of rates: that of all trials, where it is known.
  for (TrialResult& a : trials) a.point = a.point.without("lr");
  CHECK_THAT(comparisons_csv(conditions(trials, {.classes = 10, .control = "pre", .rate = 0.25})),
             contains("\n6,0.25,control,post,pre,lower,"));
  CHECK_THAT(comparisons_csv(conditions(trials, {.classes = 10, .control = "pre"})),
             contains("\n6,,control,post,pre,lower,"));
}

TEST_CASE("a pair that a claim compares has the claim's verdict in sentences, tables and files") {
  std::vector<TrialResult> trials;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const double noise = seed == 1 ? 0.2 : 0;
    for (const auto& [method, loss] : {std::pair("pre", 1.0), {"a", 0.8}, {"b", 0.9}, {"c", 1.1}})
      trials.push_back(trial(method, 24, seed, loss + noise * (loss - 0.9)));
  }
  const Judging how{.classes = 10, .control = "pre"};
  const Difference claim{.order = Difference::Order::lower, .n = 3, .mean = -0.7, .low = -0.9, .high = -0.5};
  const auto condition = [&](const ClaimedPair& pair) { return conditions(trials, how, {pair}).front(); };
  const Condition without = conditions(trials, how).front();
  const Condition with = condition({.first = "b", .second = "pre", .depth = 24, .rate = 1e-3, .difference = claim});
  REQUIRE(with.against_control.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const bool claimed = with.standings[with.against_control[i].first].method == "b";
    CHECK(with.against_control[i].difference.mean == (claimed ? -0.7 : without.against_control[i].difference.mean));
  }
  CHECK_THAT(comparisons_csv({with}), contains("control,b,pre,lower,-0.7,-0.9,-0.5"));
  // Said the other way round it is the same verdict, of the first than the second.
  const Condition turned = condition({.first = "pre", .second = "b", .depth = 24, .rate = 1e-3, .difference = claim});
  CHECK_THAT(comparisons_csv({turned}), contains("control,b,pre,higher,0.7,0.5,0.9"));
  CHECK_THAT(sentence(turned, how), contains("b and c are higher"));
  // Another depth is another condition.
  const Condition other = condition({.first = "b", .second = "pre", .depth = 12, .rate = 1e-3, .difference = claim});
  CHECK(comparisons_csv({other}) == comparisons_csv({without}));
}
