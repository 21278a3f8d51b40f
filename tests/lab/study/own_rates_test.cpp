// Tests of learning rates that a search chooses for each combination of the axes.
#include "experiments/lab/study/own_rates.h"

#include <signal.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/record/ledger.h"
#include "experiments/lab/report/rates.h"
#include "experiments/vision/study.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

// The rates of each round of a search from `start`, and all rates that were tried, if `loss` gives the losses.
struct Searched {
  std::vector<std::vector<double>> rounds;
  TriedRates tried;
};
Searched searched(double start, const std::function<double(double)>& loss) {
  Searched s;
  for (std::vector<double> next; !(next = next_rates(start, s.tried)).empty();) {
    s.rounds.push_back(next);
    for (const double rate : next) s.tried[rate] = loss(rate);
  }
  return s;
}

std::function<double(double)> valley(double best) {
  return [best](double rate) { return std::abs(std::log2(rate / best)); };
}

// A study of two kinds with one valley of the loss for each kind: the best rate is 0.012 for a and 0.001 for b. With
// `axis`, the study has the axis --lrs, otherwise its rates come from --lr.
struct ValleyStudy {
  bool axis = false, measures = true;
  std::optional<RateCriterion> by = {};
  std::atomic<int> bodies = 0;
  bool reads = true;                      // whether the body reads its rate
  double offset = 0;                      // added to all losses
  std::function<void(Trial&)> more = {};  // called first by the body

  int operator()(int argc, const char* const* argv) {
    vision::Study study("valley", "Which kind?", {.network = false});
    const auto kind = study.axis<std::string>("--kinds", {"a", "b"}, "Kinds");
    if (axis) study.axis<double>("--lrs", {0.001, 0.003, 0.01}, "Rates").above(0);
    study.optimization().lr = 0.003;
    study.options().steps = 9;
    if (by) study.choose_rates_by(by->value, by->better);
    study.judging().control = "a";
    study.claim("b is lower", "a test", lower("train_loss", {{"kind", "b"}}, {{"kind", "a"}}));
    if (axis)
      study.claim("b is lower at 0.003", "a test",
                  lower("train_loss", {{"kind", "b"}}, {{"kind", "a"}}).at({{"lr", 0.003}}));
    return study.run(argc, argv, [&](Trial& trial) {
      ++bodies;
      if (more) more(trial);
      const double* own = std::get_if<double>(reads && trial.point().find("lr") ? trial.point().find("lr") : nullptr);
      const double rate = own ? *own : 0.003;
      if (rate > 0.1) return trial.mark_diverged(0, "too fast");
      const bool is_a = trial[kind] == "a";
      const double noise = 0.01 * static_cast<double>(trial.seed() * trial.seed() % 3);
      if (measures)
        trial.measure({{"train_loss", offset + (is_a ? 1 : 0.5) + 0.1 * valley(is_a ? 0.012 : 0.001)(rate) + noise}});
      trial.measure({{"steps_taken", static_cast<double>(trial.steps())}, {"score", 1 - 0.1 * valley(0.024)(rate)}});
    });
  }
};

const Words four{"--no-progress", "--seeds", "0..3", "--out"};

Ended run_in(const TemporaryFolder& folder, ValleyStudy& study, const Words& words) {
  return call(
      folder.path(), [&](int argc, const char* const* argv) { return study(argc, argv); }, words);
}

nlohmann::json settings_of(const TemporaryFolder& folder, const std::string& out) {
  return nlohmann::json::parse(file(folder, out + "/run.json"))["settings"];
}

}  // namespace

TEST_CASE("a search for a learning rate tries octaves until the best is inside and then half octaves") {
  using Rates = std::vector<double>;
  const Searched inside = searched(0.003, valley(0.0031));
  CHECK(inside.rounds == std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.00212, 0.00424}});
  CHECK(choice_among(inside.tried, {}).rate == 0.003);
  CHECK_FALSE(choice_among(inside.tried, {}).at_bound);
  const Searched up = searched(0.003, valley(0.016));
  CHECK(up.rounds == std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.012}, {0.024}, {0.00849, 0.017}});
  CHECK(choice_among(up.tried, {}).rate == 0.017);
  CHECK_FALSE(choice_among(up.tried, {}).at_bound);
  const Searched down = searched(0.003, valley(0.0004));
  CHECK(down.rounds ==
        std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.00075}, {0.000375}, {0.000188}, {0.000265, 0.00053}});
  CHECK(choice_among(down.tried, {}).rate == 0.000375);
}

TEST_CASE("a search for a learning rate ends at five octaves and then says that the choice is at the bound") {
  const Searched up = searched(1, valley(1e6));
  CHECK(up.tried.rbegin()->first == 45.3);
  CHECK(up.tried.size() == 9);
  CHECK(choice_among(up.tried, {}).rate == 45.3);
  CHECK(choice_among(up.tried, {}).at_bound);
  const Searched down = searched(1, valley(1e-6));
  CHECK(down.tried.begin()->first == 0.0221);
  CHECK(choice_among(down.tried, {}).at_bound);
  // A best rate just inside the half octaves beyond the bound is not at the bound of the search.
  CHECK_FALSE(choice_among(searched(1, valley(32)).tried, {}).at_bound);
}

TEST_CASE("equal losses choose the lower rate and a divergence is worse than any loss") {
  CHECK(choice_among({{0.1, 2.0}, {0.2, 1.0}, {0.3, 1.0}}, {}).rate == 0.2);
  CHECK(choice_among({{0.1, infinity}, {0.2, 9.0}, {0.3, infinity}}, {}).rate == 0.2);
  CHECK(choice_among({{0.1, infinity}, {0.2, infinity}}, {}).rate == 0.1);
  // A rate whose next higher rate fails is passed over: ReZero with 48 blocks, by seed 0 in half of the steps.
  const RateChoice edge =
      choice_among({{0.003, 2.353}, {0.00424, 1.932}, {0.006, 1.798}, {0.00849, 1.783}, {0.012, 3.342}}, {});
  CHECK(edge.rate == 0.006);
  CHECK(edge.passed_over == 0.00849);
  CHECK(choice_among({{0.05, 1.5}, {0.1, 1.2}, {0.2, 1.0}, {0.4, infinity}}, {}).rate == 0.1);
  // No lower rate is nearly as good, or there is none.
  CHECK(choice_among({{0.1, 3.3}, {0.2, 1.0}, {0.4, infinity}}, {}).rate == 0.2);
  CHECK(choice_among({{0.1, 0.5}, {0.2, 1.0}}, {}).rate == 0.1);
  CHECK(choice_among({{0.1, 1.2}, {0.2, 1.0}, {0.4, 1.1}}, {}).rate == 0.2);
  CHECK(choice_among({{0.1, 1.2}, {0.2, 1.0}, {0.4, 1.1}}, {}).passed_over == std::nullopt);
  // If all rates diverge, the search goes down to its bound.
  const Searched none = searched(0.003, [](double) { return infinity; });
  CHECK(none.tried.size() == 9);
  CHECK(none.tried.begin()->first == 6.63e-05);
  CHECK(choice_among(none.tried, {}).at_bound);
  // If only low rates have a loss, the search goes down to them.
  CHECK(choice_among(searched(0.003, [](double r) { return r > 1e-3 ? infinity : 1 + r; }).tried, {}).rate < 2e-4);
}

TEST_CASE("the rates of a search have three significant digits") {
  CHECK(next_rates(0.0012345, {}) == std::vector<double>{0.000617, 0.00123, 0.00247});
}

TEST_CASE("rates.csv has all rates that were tried and the table has the neighbours of the chosen rates") {
  const std::vector<RateChoice> rates{
      choice_among({{0.1, 2.0}, {0.2, 1.0}, {0.4, 1.2}, {0.8, infinity}}, {{"kind", "a"}}),
      choice_among({{0.1, 0.5}, {0.2, 1.0}}, {{"kind", "b"}}), choice_among({{0.1, infinity}}, {{"kind", "c"}}),
      choice_among({{0.1, 3.34}, {0.2, 3.33}, {0.4, 3.33}}, {{"kind", "d"}}),
      choice_among({{0.1, 1.2}, {0.2, 1.1}, {0.4, 1.0}, {0.8, infinity}}, {{"kind", "e"}})};
  CHECK(rates_csv(rates) ==
        "kind,lr,train_loss,chosen\na,0.1,2,no\na,0.2,1,yes\na,0.4,1.2,no\na,0.8,,no\nb,0.1,0.5,yes\nb,0.2,1,no\nc,0.1,"
        ",yes\n"
        "d,0.1,3.34,no\nd,0.2,3.33,yes\nd,0.4,3.33,no\ne,0.1,1.2,no\ne,0.2,1.1,yes\ne,0.4,1,no\ne,0.8,,no\n");
  const std::string table = rates_section(rates, "chosen", "").table.markdown();
  CHECK_THAT(table, contains("| a | 0.2 | 1 | 2 | 1.2 | 4 |  |") &&
                        contains("| b | 0.1 | 0.5 |  | 1 | 2 | at the bound of the search |") &&
                        contains("no rate gave a finite loss") &&
                        contains("| d | 0.2 | 3.33 | 3.34 | 3.33 | 3 | the losses of all rates are within 2 % |") &&
                        contains("| e | 0.2 | 1.1 | 1.2 | 1 | 4 | 0.4 is at the edge |"));
  CHECK(rates_section({}, "chosen", "").table.empty());
}

TEST_CASE("with four seeds each method trains at the rate that the first seed chose") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false)};
  std::atomic<int> short_ones = 0, others = 0;
  study.more = [&](Trial& trial) {
    const bool search = is_of_search(trial.point());
    CHECK(search == (trial.seed() == 0));
    CHECK(trial.steps() == (search ? 5 : 9));
    ++(search ? short_ones : others);
  };
  const Ended e = run_in(folder, study, with(four, {"a"}));
  INFO(e.err << e.out);
  REQUIRE(e.status == 0);
  CHECK(short_ones == 2 * (3 + 2 + 2));  // two octaves up for a, and down for b
  CHECK(others == 2 * 3);
  CHECK_THAT(e.err,
             contains("seed 0 chooses a learning rate for each of 2 combinations, with about 6 trials of 5 steps"));
  CHECK_THAT(e.out, contains("Learning rates, chosen by seed 0 in half of the steps"));
  const std::string csv = timeless(file(folder, "a/results.csv"));
  CHECK_THAT(csv, contains("kind,lr,seed,") && contains("\na,0.012,1,ok,") && contains("\nb,0.00106,3,ok,") &&
                      !contains(",0,ok"));
  CHECK(lines_of(csv) == 1 + 6);
  CHECK_THAT(file(folder, "a/rates.csv"),
             contains("kind,lr,train_loss,chosen\n") && contains("\na,0.012,1,yes\n") && contains("\na,0.00849,"));
  CHECK_THAT(file(folder, "a/results.md"),
             contains("| a | 0.012 | 1 |") && contains("Seed 0 trained each combination"));
  CHECK_THAT(file(folder, "a/report.html"), contains("Learning rates, chosen by seed 0"));
  CHECK_THAT(file(folder, "a/metrics.jsonl"), !contains("search_steps"));
  // Each kind is judged at its own rate, by the seeds that did not choose. A claim about one rate is not judged.
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,") && contains(",-0.49"));
  CHECK_THAT(file(folder, "a/comparisons.csv"), contains("\n0,,control,b,a,") && contains(",0.00106,0.012\n"));
  if (study.axis) {
    CHECK_THAT(e.err, contains("b is lower at 0.003: each method trains at its own learning rate; --at-lr judges"));
    CHECK_THAT(file(folder, "a/claims.csv"), !contains("b is lower at"));
  }
  CHECK(settings_of(folder, "a")["at_lr"].empty());

  // Jobs, a resumed call and a call that shows the folder again give the same files.
  REQUIRE(run_in(folder, study, with(four, {"j", "--jobs", "3"})).status == 0);
  CHECK(timeless(file(folder, "j/results.csv")) == csv);
  CHECK(file(folder, "j/rates.csv") == file(folder, "a/rates.csv"));
  study.bodies = 0;
  REQUIRE(run_in(folder, study, with(four, {"a", "--resume"})).status == 0);
  REQUIRE(run_in(folder, study, with(four, {"a", "--rebuild"})).status == 0);
  CHECK(study.bodies == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == csv);
  // More seeds are judged at the same rates.
  const Ended more = run_in(folder, study, {"--no-progress", "--seeds", "0..4", "--out", "a", "--resume"});
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(study.bodies == 2);
  CHECK_THAT(timeless(file(folder, "a/results.csv")), contains("\na,0.012,4,ok,"));
}

TEST_CASE("a body that does not read its learning rate ends the search and no rate is shown") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false), .reads = false};
  if (GENERATE(true, false)) study.by = RateCriterion{"score", Better::higher};
  const Ended e = run_in(folder, study, with(four, {"a"}));
  INFO(e.err << e.out);
  REQUIRE(e.status == 0);
  CHECK(study.bodies == 2 * (3 + 3));
  const std::string line =
      "the body does not read the learning rate of its trial: all rates of a search give the same "
      "loss, so the search ends and no rate is shown";
  CHECK_THAT(e.err, contains(line));
  CHECK(e.err.find(line) == e.err.rfind(line));
  CHECK(timeless(file(folder, "a/results.csv")).starts_with("kind,seed,status,"));
  CHECK_THAT(file(folder, "a/metrics.jsonl"), !contains("\"lr\""));
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\na,0.0015,") && contains("\nb,0.006,") && !contains(",yes"));
  for (const std::string& text : {e.out, file(folder, "a/results.md"), file(folder, "a/comparisons.csv"),
                                  file(folder, "a/claims.csv"), file(folder, "a/report.html")})
    CHECK_THAT(text, !contains("at lr") && !contains("0.00212") && !contains(",0.003"));
  CHECK_THAT(
      file(folder, "a/results.md"),
      contains("| a | – |") && contains("all rates give the same loss: the body does not read its learning rate"));
  // The search is finished for other calls, too.
  study.bodies = 0;
  for (const char* mode : {"--resume", "--rebuild"})
    REQUIRE(run_in(folder, study, with(four, {"a", mode})).status == 0);
  CHECK(study.bodies == 0);
  const Ended from = run_in(folder, study, {"--no-progress", "--seeds", "1..4", "--rates-from", "a", "--out", "f"});
  INFO(from.err);
  REQUIRE(from.status == 0);
  CHECK(timeless(file(folder, "f/results.csv")).starts_with("kind,seed,status,"));
}

TEST_CASE("equal scores at all rates do not say that the body does not read its rate") {
  const TemporaryFolder folder;
  ValleyStudy study{.by = RateCriterion{"steps_taken", Better::higher}};
  const Ended e = run_in(folder, study, with(four, {"a"}));
  REQUIRE(e.status == 0);
  CHECK_THAT(e.err, !contains("does not read"));
  CHECK_THAT(timeless(file(folder, "a/results.csv")), contains("kind,lr,seed,"));
}

TEST_CASE("a search on a plateau says so while it runs") {
  const TemporaryFolder folder;
  ValleyStudy study{.offset = 1.4};  // a is near chance (2.303), and b is not
  const Ended e = run_in(folder, study, with(four, {"a"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  const std::string line =
      "the search for the learning rate of a is on a plateau: the losses at all rates so far are "
      "near chance (ln 10 = 2.303) after 5 steps; if it finds no better rate, give more --steps";
  CHECK_THAT(e.err, contains(line) && !contains("rate of b is on"));
  CHECK(e.err.find(line) == e.err.rfind(line));
}

TEST_CASE("the losses of a search count from the entropy of their targets") {
  RateChoice choice = choice_among({{0.1, 2.20}, {0.2, 2.18}, {0.4, 2.19}}, {{"kind", "a"}});
  CHECK_THAT(rates_section({choice}, "chosen", "").table.markdown(),
             contains("the losses of all rates are within 2 %"));
  choice.target_entropy = 2.1;
  CHECK_THAT(rates_section({choice}, "chosen", "").table.markdown(), !contains("within 2 %"));
}

TEST_CASE("a study can choose learning rates by another value than the training loss") {
  const RateCriterion accuracy{"val_accuracy", Better::higher};
  const RateChoice chosen = choice_among({{0.1, -0.4}, {0.2, -0.6}, {0.4, -0.5}, {0.8, infinity}}, {}, accuracy);
  CHECK(chosen.rate == 0.2);
  CHECK(chosen.tried[1].second == 0.6);
  const RateChoice edge = choice_among({{0.05, -0.2}, {0.1, -0.55}, {0.2, -0.6}, {0.4, -0.1}}, {}, accuracy);
  CHECK((edge.rate == 0.1 && edge.passed_over == 0.2 && !edge.at_bound));
  const RateChoice none_ended = choice_among({{0.1, infinity}, {0.2, infinity}}, {}, accuracy);
  CHECK_THAT(rates_section({none_ended}, "chosen", "").table.markdown(),
             contains("| 0.1 | none |") && contains("no rate gave a finite value"));
  const std::vector<RateChoice> rates{chosen, choice_among({{0.1, -0.5}, {0.2, -0.505}}, {}, accuracy)};
  CHECK_THAT(rates_csv(rates), contains("lr,val_accuracy,chosen\n0.1,0.4,no\n0.2,0.6,yes\n0.4,0.5,no\n0.8,,no\n"));
  CHECK_THAT(rates_section(rates, "chosen", "").table.markdown(),
             contains("| lr | val_accuracy |") && contains("| 0.2 | 0.6 | 0.4 | 0.5 | 4 |  |") &&
                 contains("the values of all rates are within 2 %"));

  const TemporaryFolder folder;
  ValleyStudy study{.by = RateCriterion{"score", Better::higher}};
  const Ended e = run_in(folder, study, with(four, {"a"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  // The score is highest at 0.024 for both kinds, where the loss of neither is lowest.
  CHECK_THAT(timeless(file(folder, "a/results.csv")), contains("\na,0.024,1,ok,") && contains("\nb,0.024,1,ok,"));
  CHECK_THAT(file(folder, "a/rates.csv"), contains("kind,lr,score,chosen\n") && contains("\na,0.024,1,yes\n"));
  CHECK_THAT(file(folder, "a/results.md"), contains("The tried rate with the highest score was chosen"));
  const Words others{"--no-progress", "--seeds", "1..3", "--rates-from", "a", "--out"};
  REQUIRE(run_in(folder, study, with(others, {"f"})).status == 0);
  CHECK(file(folder, "f/rates.csv") == file(folder, "a/rates.csv"));
  // A folder goes on by the value with which it began, and another value cannot be merged with it.
  study.by = {};
  study.bodies = 0;
  const std::string csv = file(folder, "a/results.csv");
  for (const char* mode : {"--rebuild", "--resume"}) {
    REQUIRE(run_in(folder, study, with(four, {"a", mode})).status == 0);
    CHECK(study.bodies == 0);
    CHECK(file(folder, "a/results.csv") == csv);
    CHECK_THAT(file(folder, "a/rates.csv"), contains("kind,lr,score,chosen\n"));
  }
  REQUIRE(run_in(folder, study, with(four, {"l"})).status == 0);
  CHECK_THAT(file(folder, "a/run.json"), contains("\"rates_by\""));
  CHECK_THAT(file(folder, "l/run.json"), !contains("rates_by"));
  const auto rule = [&](const std::string& out) {
    return rule_for_rates(StudyDescription::parse(file(folder, out + "/run.json"), out));
  };
  CHECK(rule("a") == "a search by seed 0 for the best score");
  CHECK(rule("l") == "a search by seed 0");

  study.by = RateCriterion{"nothing", Better::lower};
  const Ended missing = run_in(folder, study, with(others, {"m"}));
  CHECK(missing.status == 2);
  CHECK_THAT(missing.err, contains("--rates-from a: this study chooses learning rates by nothing, which no trial of"));
  const Ended none = run_in(folder, study, with(four, {"n"}));
  CHECK(none.status == 1);
  CHECK_THAT(none.err, contains("the search for a learning rate compares nothing, which no trial of "));
}

TEST_CASE("an interrupted search takes the same path when it is resumed") {
  const TemporaryFolder folder;
  ValleyStudy study;
  REQUIRE(run_in(folder, study, with(four, {"whole"})).status == 0);
  const int whole = study.bodies;
  for (const int stop : {1, 4, 6, 9}) {
    study.bodies = 0;
    study.more = [&](Trial& trial) {
      if (study.bodies != stop) return;
      interrupted_by(SIGINT);
      for ([[maybe_unused]] const std::int64_t step : trial.each_step()) {  // leaves the trial after the interrupt
      }
    };
    const std::string out = "r" + std::to_string(stop);
    CHECK(run_in(folder, study, with(four, {out})).status == 130);
    study.more = {};
    REQUIRE(run_in(folder, study, with(four, {out, "--resume"})).status == 0);
    CHECK(study.bodies == whole + 1);
    CHECK(timeless(file(folder, out + "/results.csv")) == timeless(file(folder, "whole/results.csv")));
    CHECK(file(folder, out + "/rates.csv") == file(folder, "whole/rates.csv"));
  }
}

TEST_CASE("a shard has all trials of the methods in it and chooses the same rates") {
  const TemporaryFolder folder;
  ValleyStudy study;
  REQUIRE(run_in(folder, study, with(four, {"a"})).status == 0);
  REQUIRE(run_in(folder, study, with(four, {"s", "--shard", "2/2"})).status == 0);
  const std::string shard = timeless(file(folder, "s/results.csv"));
  CHECK(lines_of(shard) == 1 + 3);
  CHECK_THAT(shard, !contains("\na,"));
  CHECK_THAT(file(folder, "a/rates.csv"), contains(file(folder, "s/rates.csv").substr(25)));
}

TEST_CASE("without a search all trials train at the rates of the call") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false)};
  const auto csv = [&](const Words& words) {
    const Ended e = run_in(folder, study, with({"--no-progress", "--out", "a", "--overwrite"}, words));
    INFO(e.err);
    REQUIRE(e.status == 0);
    CHECK_FALSE(std::filesystem::exists(folder / "a/rates.csv"));
    CHECK_THAT(file(folder, "a/ledger.jsonl"), !contains("search_steps"));
    return file(folder, "a/results.csv");
  };
  // Fewer than four seeds, or one combination.
  CHECK(lines_of(csv({"--seeds", "0..2"})) == 1 + 2 * 3 * (study.axis ? 3 : 1));
  CHECK(settings_of(folder, "a")["at_lr"] == (study.axis ? nlohmann::json{0.001, 0.003, 0.01} : nlohmann::json{0.003}));
  CHECK(lines_of(csv({"--seeds", "0..3", "--kinds", "a"})) == 1 + 4 * (study.axis ? 3 : 1));
  // --at-lr, or values of the axis on the command line.
  const std::string at = csv({"--seeds", "0..3", "--at-lr", "0.004"});
  CHECK(lines_of(at) == 1 + 2 * 4);
  if (study.axis) {
    CHECK_THAT(at, contains("\nb,0.004,3,ok,"));
    CHECK(timeless(csv({"--seeds", "0..3", "--lrs", "0.004"})) == timeless(at));
    CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,"));
    CHECK(lines_of(csv({"--seeds", "0..3", "--at-lr", "0.004,0.008"})) == 1 + 2 * 2 * 4);
  } else {
    CHECK(settings_of(folder, "a")["lr"] == 0.004);
    CHECK_THAT(at, contains("\nb,3,ok,"));
  }
}

TEST_CASE("the option --dry-run lists the known trials of a search and counts the others") {
  const TemporaryFolder folder;
  ValleyStudy study;
  const Ended e = run_in(folder, study, {"--seeds", "0..3", "--dry-run"});
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(e.out,
             contains("a lr 0.0015 search_steps 5 seed 0\n") && contains("b lr 0.006 search_steps 5 seed 0\n") &&
                 contains("search: about 6 trials of 5 steps for each of 2 combinations, of which the first 3 are "
                          "listed; then 6 trials of 9 steps at the chosen rates\n") &&
                 contains("about 18 trials: 114 steps, "));
  CHECK_THAT(run_in(folder, study, {"--seeds", "0..2", "--dry-run"}).out,
             contains("\n6 trials of 9 steps") && !contains("search"));
}

TEST_CASE("the option --rates-from trains at the rates that an earlier study chose") {
  const TemporaryFolder folder;
  ValleyStudy study;
  REQUIRE(run_in(folder, study, with(four, {"a"})).status == 0);
  const std::string csv = timeless(file(folder, "a/results.csv"));
  std::filesystem::copy_file(folder / "a/ledger.jsonl", folder / "kept.jsonl");
  const Words others{"--no-progress", "--seeds", "1..3", "--out"};
  for (const std::string from : {"a", "a/ledger.jsonl", "kept.jsonl"}) {
    study.bodies = 0;
    const Ended e = run_in(folder, study, with(others, {"f", "--overwrite", "--rates-from", from}));
    INFO(e.err);
    REQUIRE(e.status == 0);
    CHECK(study.bodies == 6);
    CHECK(timeless(file(folder, "f/results.csv")) == csv);
    CHECK(file(folder, "f/rates.csv") == file(folder, "a/rates.csv"));
    CHECK_THAT(file(folder, "f/results.md"), contains("Learning rates, taken from " + from) && contains("(seed 0)"));
  }
  // The folder has copies of the trials that chose, so it can be shown and resumed without the file.
  std::filesystem::remove_all(folder / "kept.jsonl");
  REQUIRE(run_in(folder, study, with(others, {"f", "--rebuild"})).status == 0);
  CHECK(timeless(file(folder, "f/results.csv")) == csv);
  study.bodies = 0;
  REQUIRE(run_in(folder, study, {"--no-progress", "--seeds", "1..4", "--out", "f", "--resume"}).status == 0);
  CHECK(study.bodies == 2);
  CHECK_THAT(timeless(file(folder, "f/results.csv")), contains("\nb,0.00106,4,ok,"));
  // One seed is enough.
  REQUIRE(run_in(folder, study, {"--no-progress", "--seeds", "7", "--out", "one", "--rates-from", "a"}).status == 0);
  CHECK_THAT(timeless(file(folder, "one/results.csv")), contains("\na,0.012,7,ok,"));
}

TEST_CASE("the option --rates-from writes the axes in the same order as the search") {
  const TemporaryFolder folder;
  const auto outcome = [&](const Words& words) {
    return call(
        folder.path(),
        [](int argc, const char* const* argv) {
          vision::Study study("order", "Which kind?", {.network = false});
          const auto kind = study.axis<std::string>("--kinds", {"a", "b"}, "Kinds");
          study.axis<std::int64_t>("--depths", {2, 4}, "Depths").slowest();
          study.options().steps = 9;
          study.judging().control = "a";
          return study.run(argc, argv, [&](Trial& trial) {
            const double rate = trial.point().get<double>("lr");
            trial.measure({{"train_loss", valley(trial[kind] == "a" ? 0.012 : 0.001)(rate)}});
          });
        },
        words);
  };
  REQUIRE(outcome(with(four, {"a"})).status == 0);
  const Ended e = outcome({"--no-progress", "--seeds", "4", "--out", "f", "--rates-from", "a"});
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("kind,depth,lr,train_loss,chosen\n"));
  CHECK(file(folder, "f/rates.csv") == file(folder, "a/rates.csv"));
  CHECK_THAT(outcome({"--depths", "8", "--seeds", "4", "--out", "x", "--rates-from", "a"}).err,
             contains("no search chose the learning rate of a depth 8; leave these values out"));
}

TEST_CASE("the option --rates-from says what the file lacks") {
  const TemporaryFolder folder;
  ValleyStudy study;
  const auto refused = [&](const Words& words) {
    const Ended e = run_in(folder, study, with({"--no-progress", "--out", "x"}, words));
    CHECK(e.status == 2);
    CHECK_FALSE(std::filesystem::exists(folder / "x"));
    return e.err;
  };
  REQUIRE(run_in(folder, study, {"--no-progress", "--seeds", "0", "--out", "plain"}).status == 0);
  CHECK_THAT(refused({"--rates-from", "none"}), contains("--rates-from none: there is no none; give a study folder"));
  CHECK_THAT(refused({"--rates-from", "plain"}),
             contains("--rates-from plain: no trial of a search for learning rates is in it"));
  REQUIRE(run_in(folder, study, with(four, {"b", "--shard", "2/2"})).status == 0);
  CHECK_THAT(refused({"--rates-from", "b", "--seeds", "5"}),
             contains("--rates-from b: no search chose the learning rate of a; leave these values out"));
  CHECK_THAT(refused({"--rates-from", "b", "--seeds", "0", "--kinds", "b"}),
             contains("--seeds: seed 0 chose learning rates in b, so it cannot judge"));
  CHECK_THAT(refused({"--rates-from", "b", "--at-lr", "0.1"}), contains("--at-lr and --rates-from both set"));
  // A search that was interrupted has not chosen: after its first round, and before its last trial.
  std::string ledger = file(folder, "b/ledger.jsonl");
  const auto first_lines = [&](int lines) {
    std::size_t end = 0;
    for (int line = 0; line < lines; ++line) end = ledger.find('\n', end) + 1;
    return ledger.substr(0, end);
  };
  for (const int lines : {3, 6}) {
    write_file_atomically(folder / "short.jsonl", first_lines(lines));
    CHECK_THAT(refused({"--rates-from", "short.jsonl", "--seeds", "5", "--kinds", "b"}),
               contains("the search for the learning rate of b is not finished; finish it with --resume"));
  }
  // If code of two versions searched, the trials of the later version count. No note says that the copied trials are
  // not used.
  std::string other = first_lines(7);
  const std::string code = other.substr(other.find("\"code\":\"") + 8, 16);
  for (auto at = other.find(code); at != other.npos; at = other.find(code)) other.replace(at, 16, "0123456789abcdef");
  write_file_atomically(folder / "both.jsonl", first_lines(7) + other);
  const Ended taken = run_in(
      folder, study, {"--no-progress", "--out", "t", "--rates-from", "both.jsonl", "--seeds", "5", "--kinds", "b"});
  INFO(taken.err);
  CHECK(taken.status == 0);
  CHECK_THAT(taken.err, !contains("kept but not used"));
  CHECK_THAT(timeless(file(folder, "t/results.csv")), contains("b,0.00106,5,ok,"));
  // A typed rate replaces the fixed rate of a configuration file.
  REQUIRE(run_in(folder, study, {"--no-progress", "--out", "fixed", "--at-lr", "0.001", "--seeds", "0"}).status == 0);
  REQUIRE(run_in(folder, study, {"--no-progress", "--out", "typed", "--config", "fixed/run.json", "--lr", "0.006"})
              .status == 0);
  CHECK(settings_of(folder, "typed")["at_lr"] == nlohmann::json{0.006});
  // The searches of two seeds are no single choice.
  REQUIRE(run_in(folder, study, {"--no-progress", "--seeds", "4..7", "--out", "c"}).status == 0);
  write_file_atomically(folder / "two.jsonl", ledger + file(folder, "c/ledger.jsonl"));
  CHECK_THAT(refused({"--rates-from", "two.jsonl", "--seeds", "9", "--kinds", "b"}),
             contains("several searches chose the learning rate of b (seeds 0, 4; steps 5)"));
}

TEST_CASE("options for learning rates that contradict each other are refused") {
  const TemporaryFolder folder;
  ValleyStudy study;
  const auto err = [&](const Words& words) {
    const Ended e = run_in(folder, study, words);
    CHECK(e.status == 2);
    return e.err;
  };
  CHECK_THAT(err({"--at-lr", "0.1,0.2"}), contains("--at-lr expects one learning rate, because program has no axis"));
  CHECK_THAT(err({"--at-lr", "0.1", "--lr", "0.1"}), contains("--at-lr and --lr both give the learning rate"));
  study.axis = true;
  CHECK_THAT(err({"--at-lr", "0.1", "--lrs", "0.1"}), contains("--at-lr and --lrs both give the learning rates"));
  CHECK_THAT(err({"--rates-from", "a", "--lrs", "0.1"}), contains("--lrs and --rates-from both set"));
}

TEST_CASE("a search without training losses is an error") {
  const TemporaryFolder folder;
  ValleyStudy study{.measures = false};
  const Ended e = run_in(folder, study, with(four, {"a"}));
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("compares train_loss, which no trial of a measured") && contains("or give --at-lr"));
}

TEST_CASE("a failed trial stops the search of its method until it is tried again") {
  const TemporaryFolder folder;
  ValleyStudy study;
  bool fails = true;
  study.more = [&](Trial& trial) {
    if (fails && trial.point().get<std::string>("kind") == "a" && trial.point().get<double>("lr") == 0.006)
      throw Error("no");
  };
  const Ended e = run_in(folder, study, with(four, {"a"}));
  CHECK(e.status == 1);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\nb,") && !contains("\na,"));
  REQUIRE(run_in(folder, study, with(four, {"a", "--rebuild"})).status == 0);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\nb,") && !contains("\na,"));
  fails = false;
  REQUIRE(run_in(folder, study, with(four, {"a", "--resume"})).status == 0);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\na,0.012,1,yes"));
}

TEST_CASE("a resumed study folder goes on by its own rule for learning rates") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = true};
  const auto err = [&](const Words& words) {
    const Ended e = run_in(folder, study, with({"--no-progress", "--resume", "--out"}, words));
    CHECK(e.status == 2);
    return e.err;
  };
  REQUIRE(run_in(folder, study, with(four, {"search"})).status == 0);
  CHECK_THAT(err({"search", "--seeds", "1..5"}),
             contains("--seeds begins with 1, but seed 0 chose the learning rates of search"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--at-lr", "0.1"}),
             contains("--at-lr: each method of search trains at its own learning rate"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--lrs", "0.1"}), contains("--lrs: each method of search trains"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--rates-from", "search"}),
             contains("--rates-from: a search chose the learning rates of search"));
  // A study that began with three seeds has no search, even with more seeds.
  study.axis = false;
  REQUIRE(run_in(folder, study, {"--no-progress", "--seeds", "0..2", "--out", "fixed"}).status == 0);
  study.bodies = 0;
  const Ended more = run_in(folder, study, {"--no-progress", "--seeds", "0..3", "--out", "fixed", "--resume"});
  REQUIRE(more.status == 0);
  CHECK(study.bodies == 2);
  CHECK_THAT(more.err, contains("the trials of fixed train at fixed learning rates, and so does this call"));
  CHECK_THAT(err({"fixed", "--rates-from", "search"}),
             contains("--rates-from: the trials of fixed train at fixed learning rates"));
}

TEST_CASE("a network trains at its own rate for half of the steps in a search") {
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("small", "Which gate?");
    const auto gate = study.axis<std::string>("--gates", {"pre", "rezero"}, "Gates");
    const auto depth = study.axis<int>("--depths", {1, 2}, "Depths");
    study.options().steps = 12, study.options().warmup = 4, study.optimization().lr = 0.002;
    return study.run(argc, argv, [&](Trial& trial) {
      ++bodies;
      CHECK(trial.warmup() == (is_of_search(trial.point()) ? 2 : 4));
      nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = trial[gate]}));
      trial.train(model);
    });
  };
  const Words words{"--dim", "8", "--batch", "4", "--eval-images", "20", "--no-progress", "--seeds", "0..3", "--out"};
  const Ended e = call(folder.path(), main, with(words, {"a"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(e.err, !contains("did not read"));
  const Ledger ledger(folder / "a/ledger.jsonl");
  std::map<std::string, double> chosen;
  for (const LedgerEntry& entry : ledger.entries()) {
    const Point& point = entry.record.point;
    CHECK(entry.record.steps == (is_of_search(point) ? 6 : 12));
    const std::string cell = point.without("lr").without("seed").label();
    if (!is_of_search(point))
      CHECK(chosen.try_emplace(cell, point.get<double>("lr")).first->second == point.get<double>("lr"));
  }
  CHECK(chosen.size() == 4);
  // A judged trial equals the trial of a study at this rate.
  const std::string rate = fmt::format("{}", chosen.at("pre depth 1"));
  REQUIRE(call(folder.path(), main, with(words, {"b", "--gates", "pre", "--depths", "1", "--at-lr", rate})).status ==
          0);
  const auto loss = [&](const std::string& out) {
    const Ledger of(folder / (out + "/ledger.jsonl"));
    for (const LedgerEntry& entry : of.entries())
      if (entry.record.point.label().starts_with("pre depth 1") && !is_of_search(entry.record.point) &&
          entry.record.seed() == 2)
        return entry.record.value("train_loss");
    return unknown;
  };
  CHECK(loss("a") == loss("b"));
  REQUIRE(call(folder.path(), main, with(words, {"j", "--jobs", "2"})).status == 0);
  CHECK(file(folder, "j/metrics.jsonl") == file(folder, "a/metrics.jsonl"));
  CHECK(file(folder, "j/rates.csv") == file(folder, "a/rates.csv"));
}
