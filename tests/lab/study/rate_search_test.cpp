// Tests of the search for a learning rate, and of the trials at neighbouring rates.
#include "experiments/lab/study/rate_search.h"

#include <signal.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/rates.h"
#include "experiments/vision/study.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
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

double chosen(const TriedRates& tried, bool parabola = true) { return choice_among(tried, {}, {}, parabola).rate; }

// The files of a study folder that must not depend on how its trials were run.
std::string files_of(const TemporaryFolder& folder, const std::string& out) {
  std::string all = timeless(file(folder, out + "/results.csv"));
  for (const char* name : {"/rates.csv", "/claims.csv", "/comparisons.csv", "/metrics.jsonl"})
    all += file(folder, out + name);
  return all;
}

// Makes a study folder from another one, with the trials of its ledger that `keep` names.
void copy_folder(const TemporaryFolder& folder, const std::string& from, const std::string& to,
                 const std::function<bool(const Point&)>& keep) {
  std::filesystem::create_directories(folder / to);
  if (!std::filesystem::exists(folder / (to + "/run.json")))
    std::filesystem::copy(folder / (from + "/run.json"), folder / to);
  const Ledger ledger(folder / (from + "/ledger.jsonl"));
  Ledger copy(folder / (to + "/ledger.jsonl"));
  for (const LedgerEntry& e : ledger.entries())
    if (keep(e.record.point)) copy.append(e);
}

}  // namespace

TEST_CASE("a search for a learning rate tries octaves until the best is inside and then half octaves") {
  using Rates = std::vector<double>;
  const Searched inside = searched(0.003, valley(0.0031)), up = searched(0.003, valley(0.016)),
                 down = searched(0.003, valley(0.0004));
  CHECK(inside.rounds == std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.00212, 0.00424}});
  CHECK(up.rounds == std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.012}, {0.024}, {0.00849, 0.017}});
  CHECK(down.rounds ==
        std::vector<Rates>{{0.0015, 0.003, 0.006}, {0.00075}, {0.000375}, {0.000188}, {0.000265, 0.00053}});
  for (const Searched& s : {inside, up, down}) CHECK_FALSE(choice_among(s.tried, {}).at_bound);
  CHECK(next_rates(0.0012345, {}) == Rates{0.000617, 0.00123, 0.00247});  // three digits
}

TEST_CASE("a search for a learning rate ends at five octaves and then says that the choice is at the bound") {
  const Searched up = searched(1, valley(1e6)), down = searched(1, valley(1e-6));
  CHECK(up.tried.rbegin()->first == 45.3);
  CHECK(up.tried.size() == 9);
  CHECK(chosen(up.tried) == 45.3);
  CHECK(down.tried.begin()->first == 0.0221);
  for (const Searched& s : {up, down}) CHECK(choice_among(s.tried, {}).at_bound);
  // A best rate just inside the half octaves beyond the bound is not at the bound of the search.
  CHECK_FALSE(choice_among(searched(1, valley(32)).tried, {}).at_bound);
}

TEST_CASE("the choice is the vertex of a parabola in the logarithm of the rate") {
  // Octaves above 0.002: (1.4 - 1.2) / (2 (1.4 - 2 + 1.2)) = 1/6.
  TriedRates tried{{0.001, 1.4}, {0.002, 1.0}, {0.004, 1.2}};
  CHECK(chosen(tried) == 0.00224);
  CHECK(chosen(tried, false) == 0.002);
  tried.insert({{0.0014, infinity}, {0.008, 1.3}});  // neither is finite and within 1.3 octaves
  CHECK(chosen(tried) == 0.00224);
  for (const double best : {0.0026, 0.00031, 0.0417})
    CHECK(chosen(searched(0.003, [&](double r) { return 1 + 0.08 * std::pow(std::log2(r / best), 2); }).tried) == best);
  CHECK(chosen({{1, 1.0}, {1.41, 0.5}, {2, 0.3}}) == 2);  // clamped to the tried rates
  CHECK(chosen({{1, 1.0}, {1.5, 0.9}, {2, 0.2}}) == 2);   // not convex
  CHECK(chosen({{1, infinity}, {2, 1.0}, {4, 1.1}}) == 2);
}

TEST_CASE("equal losses choose the lower rate and a divergence is worse than any loss") {
  CHECK(chosen({{0.1, 2.0}, {0.2, 1.0}, {0.3, 1.0}}, false) == 0.2);
  CHECK(chosen({{0.1, infinity}, {0.2, 9.0}, {0.3, infinity}}) == 0.2);
  CHECK(chosen({{0.1, infinity}, {0.2, infinity}}) == 0.1);
  // A rate whose next higher rate fails is passed over: ReZero with 48 blocks, by seed 0 in half of the steps.
  const RateChoice edge =
      choice_among({{0.003, 2.353}, {0.00424, 1.932}, {0.006, 1.798}, {0.00849, 1.783}, {0.012, 3.342}}, {});
  CHECK((edge.rate == 0.006 && edge.passed_over == 0.00849));
  CHECK(chosen({{0.05, 1.5}, {0.1, 1.2}, {0.2, 1.0}, {0.4, infinity}}) == 0.1);
  // No lower rate is nearly as good, or there is none.
  CHECK(chosen({{0.1, 3.3}, {0.2, 1.0}, {0.4, infinity}}) == 0.2);
  CHECK(chosen({{0.1, 0.5}, {0.2, 1.0}}) == 0.1);
  CHECK(choice_among({{0.1, 1.2}, {0.2, 1.0}, {0.4, 1.1}}, {}).passed_over == std::nullopt);
  // If all rates diverge, the search goes down to its bound.
  const Searched none = searched(0.003, [](double) { return infinity; });
  CHECK(none.tried.size() == 9);
  CHECK(none.tried.begin()->first == 6.63e-05);
  CHECK(choice_among(none.tried, {}).at_bound);
  // If only low rates have a loss, the search goes down to them.
  CHECK(chosen(searched(0.003, [](double r) { return r > 1e-3 ? infinity : 1 + r; }).tried) < 2e-4);
}

TEST_CASE("rates.csv has all trials of searches and neighbours, and the table has the chosen and the best rates") {
  StudyResults r{.axes = {"kind", "lr", "seed"}};
  r.judging.rates = {choice_among({{0.1, 2.0}, {0.2, 1.0}, {0.4, 1.2}, {0.8, infinity}}, {{"kind", "a"}}),
                     choice_among({{0.1, 0.5}, {0.2, 1.0}}, {{"kind", "b"}}),
                     choice_among({{0.1, infinity}}, {{"kind", "c"}}),
                     choice_among({{0.1, 1.2}, {0.2, 1.1}, {0.4, 1.0}, {0.8, infinity}}, {{"kind", "d"}})};
  r.judging.rates[2].blind = "diverged at 0.1 to 0.1";
  r.neighbours = {{.point = {{"kind", "a"}, {"lr", 0.356}, {"neighbour", 1}, {"seed", 3}},
                   .status = Status::ok,
                   .values = {{"train_loss", 1.25}}}};
  CHECK(rates_csv(r) ==
        "kind,lr,seed,trial,train_loss,chosen_lr\na,0.1,0,search,2,0.252\na,0.2,0,search,1,0.252\n"
        "a,0.4,0,search,1.2,0.252\na,0.8,0,search,,0.252\na,0.356,3,neighbour,1.25,0.252\nb,0.1,0,search,0.5,0.1\n"
        "b,0.2,0,search,1,0.1\nc,0.1,0,search,,0.1\nd,0.1,0,search,1.2,0.2\nd,0.2,0,search,1.1,0.2\n"
        "d,0.4,0,search,1,0.2\nd,0.8,0,search,,0.2\n");
  CHECK_THAT(rates_section(r.judging.rates, "chosen", "").table.markdown(),
             contains("| a | 0.252 | 1 | 0.2 | 4 |  |") &&
                 contains("| b | 0.1 | 0.5 | 0.1 | 2 | at the bound of the search |") &&
                 contains("| c | 0.1 | none | 0.1 | 1 | no rate trains: diverged at 0.1 to 0.1 |") &&
                 contains("| d | 0.2 | 1 | 0.4 | 4 | 0.4 is at the edge |"));
  CHECK(rates_section({}, "chosen", "").table.empty());
}

TEST_CASE("with four seeds each method trains at the rate that the first seed chose") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false)};
  int short_ones = 0, others = 0;
  study.more = [&](lab::Trial& trial) {
    const bool search = is_of_search(trial.point());
    CHECK(search == (trial.seed() == 0));
    CHECK(trial.steps() == (search ? 5 : 9));
    ++(search ? short_ones : others);
  };
  const Ended e = trained_in(folder, study, with(three_judge, {"a"}));
  CHECK(short_ones == 2 * (3 + 2 + 2));  // two octaves up for a, and down for b
  CHECK(others == 2 * 3);
  CHECK_THAT(e.err,
             contains("seed 0 chooses a learning rate for each of 2 combinations, with about 6 trials of 5 steps"));
  CHECK_THAT(e.out, contains("Learning rates, chosen by seed 0"));
  const std::string csv = timeless(file(folder, "a/results.csv"));
  CHECK_THAT(csv, contains("kind,lr,seed,") && contains("\na,0.012,1,ok,") && contains("\nb,0.000977,3,ok,") &&
                      !contains(",0,ok"));
  CHECK(lines_of(csv) == 1 + 6);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\na,0.012,0,search,1,0.012\n"));
  CHECK_THAT(file(folder, "a/results.md"),
             contains("| a | 0.012 | 1 | 0.012 | 7 |") && contains("| b | 0.000977 | 0.5084 | 0.00106 | 7 |") &&
                 contains("Seed 0 trained each combination for half of the steps, with the whole warm-up"));
  CHECK_THAT(file(folder, "a/report.html"), contains("Learning rates, chosen by seed 0"));
  // Each kind is judged at its own rate, by the seeds that did not choose. A claim about one rate is not judged.
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,undecided,3,0,3,") && contains(",-0.49"));
  CHECK_THAT(file(folder, "a/comparisons.csv"), contains("\n0,,control,b,a,") && contains(",0.000977,0.012\n"));
  if (study.axis) {
    CHECK_THAT(e.err, contains("b is lower at 0.003: each method trains at its own learning rate; --at-lr judges"));
    CHECK_THAT(file(folder, "a/claims.csv"), !contains("b is lower at"));
  }
  study.bodies = 0;
  for (const char* mode : {"--resume", "--rebuild"}) trained_in(folder, study, with(three_judge, {"a", mode}));
  CHECK(study.bodies == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == csv);
}

TEST_CASE("a trial of a search has the whole warm-up, and all steps if the warm-up is longer than half of its steps") {
  const TemporaryFolder folder;
  ValleyStudy study;
  using Seen = std::set<std::tuple<bool, std::int64_t, std::int64_t>>;  // of the search, steps, warm-up
  Seen seen;
  double share = 0;
  study.more = [&](lab::Trial& trial) {
    trial.default_warmup(share);
    seen.emplace(is_of_search(trial.point()), trial.steps(), trial.warmup());
  };
  const auto trials = [&](const Words& words) {
    seen.clear();
    trained_in(folder, study, with(with(three_judge, {"a", "--overwrite"}), words));
    return seen;
  };
  CHECK(trials({"--warmup", "2"}) == Seen{{true, 5, 2}, {false, 9, 2}});
  CHECK(trials({"--warmup", "3"}) == Seen{{true, 9, 3}, {false, 9, 3}});
  study.warmup.reset(), share = 0.25;  // as set by a recipe
  CHECK(trials({}) == Seen{{true, 5, 2}, {false, 9, 2}});
  study.declare = [](vision::Study& s) { s.axis<std::int64_t>("--warmups", {0, 4}, "Warm-ups"); };
  CHECK(trials({}) == Seen{{true, 5, 0}, {false, 9, 0}, {true, 9, 4}, {false, 9, 4}});
}

TEST_CASE("a network trains at its own rate in a study with a search") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("small", "Which gate?");
    const auto gate = study.axis<std::string>("--gates", {"pre", "rezero"}, "Gates");
    study.options().steps = 12, study.options().warmup = 3, study.optimization().lr = 0.002;
    return study.run(argc, argv, [&](lab::Trial& trial) {
      CHECK(trial.warmup() == 3);
      nn::ViT model(vision::vit(trial, {.depth = 1, .method = trial[gate]}));
      trial.train(model);
    });
  };
  const Words words{"--dim", "8", "--batch", "4", "--eval-images", "20", "--no-progress", "--seeds", "0..3", "--out"};
  const Ended e = call(folder.path(), main, with(words, {"a"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(e.err, !contains("did not read"));
  // The loss of a judged trial of pre, and its rate.
  const auto judged = [&](const std::string& out) {
    const Ledger ledger(folder / (out + "/ledger.jsonl"));
    for (const LedgerEntry& entry : ledger.entries()) {
      CHECK(entry.record.steps == (is_of_search(entry.record.point) ? 6 : 12));
      if (entry.record.point.contains({{"gate", "pre"}, {"seed", 2}}))
        return std::pair(entry.record.value("train_loss"), entry.record.point);
    }
    return std::pair(unknown, Point());
  };
  const auto [loss, point] = judged("a");
  // A judged trial equals the trial of a study at this rate.
  const std::string rate = fmt::format("{}", point.get<double>("lr"));
  REQUIRE(call(folder.path(), main, with(words, {"b", "--gates", "pre", "--at-lr", rate})).status == 0);
  CHECK(judged("b").first == loss);
}

TEST_CASE("a body that does not read its learning rate ends the search and no rate is shown") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false), .reads = false};
  if (GENERATE(true, false)) study.by = RateCriterion{"score", Better::higher};
  const Ended e = trained_in(folder, study, with(five_judge, {"a"}));
  CHECK(study.bodies == 2 * (3 + 5));  // and none at neighbouring rates
  const std::string line =
      "the body does not read the learning rate of its trial: all rates of a search give the same "
      "loss, so the search ends and no rate is shown";
  CHECK(count(e.err, line) == 1);
  CHECK(timeless(file(folder, "a/results.csv")).starts_with("kind,seed,status,"));
  CHECK_THAT(file(folder, "a/metrics.jsonl"), !contains("\"lr\""));
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\na,0.0015,") && contains("\nb,0.006,") && !contains(",0.003\n"));
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,agree,5,0,5,"));
  for (const std::string& text : {e.out, file(folder, "a/results.md"), file(folder, "a/comparisons.csv"),
                                  file(folder, "a/claims.csv"), file(folder, "a/report.html")})
    CHECK_THAT(text, !contains("at lr 0") && !contains("0.00212") && !contains(",0.003"));
  CHECK_THAT(
      file(folder, "a/results.md"),
      contains("| a | – |") && contains("all rates give the same loss: the body does not read its learning rate"));
  // The search is finished for other calls, too.
  study.bodies = 0;
  for (const char* mode : {"--resume", "--rebuild"}) trained_in(folder, study, with(five_judge, {"a", mode}));
  CHECK(study.bodies == 0);
  trained_in(folder, study, {"--no-progress", "--seeds", "1..4", "--rates-from", "a", "--out", "f"});
  CHECK(timeless(file(folder, "f/results.csv")).starts_with("kind,seed,status,"));
}

TEST_CASE("equal scores at all rates do not say that the body does not read its rate") {
  const TemporaryFolder folder;
  ValleyStudy study{.by = RateCriterion{"steps_taken", Better::higher}};
  CHECK_THAT(trained_in(folder, study, with(three_judge, {"a"})).err, !contains("does not read"));
  CHECK_THAT(timeless(file(folder, "a/results.csv")), contains("kind,lr,seed,"));
}

TEST_CASE("a search that stays near chance or diverges is blind, and its method cannot be judged") {
  const TemporaryFolder folder;
  const auto [at, blind] = GENERATE(table<double, std::string>({{2.25, "stayed near chance at 0.0015 to 0.024"},
                                                                {infinity, "diverged at 6.63e-05 to 0.006"},
                                                                {2.0, ""}}));  // flat, but it trained
  ValleyStudy study{.loss = [&](const Point& point, double rate) {
    return point.contains({{"kind", "a"}}) ? at + 0.001 * valley(0.012)(rate) : ValleyStudy::usual_loss(point, rate);
  }};
  const Ended e = trained_in(folder, study, with(five_judge, {"a"}));
  const std::string table = file(folder, "a/results.md"), claims = file(folder, "a/claims.csv"),
                    why = "cannot be judged: no rate trains a, which " + blind;
  CHECK((table.find("no rate trains: " + blind) != table.npos) == !blind.empty());
  CHECK_THAT(claims,
             contains(std::string("b is lower,a test,") + (blind.empty() ? "agree," : "undecided,") + "5,0,5,"));
  CHECK((claims.find(why) != claims.npos) == !blind.empty());
  CHECK((e.out.find("cannot be judged") != e.out.npos) == !blind.empty());
  CHECK((file(folder, "a/ledger.jsonl").find("\"neighbour\"") == std::string::npos) == !blind.empty());
  CHECK((e.err.find("no learning rate trains a so far: it ") != e.err.npos) == !blind.empty());
  CHECK_THAT(e.err, !contains("no learning rate trains b"));
}

TEST_CASE("a study can choose learning rates by another value than the training loss") {
  const RateCriterion accuracy{"val_accuracy", Better::higher};
  const RateChoice best = choice_among({{0.1, -0.4}, {0.2, -0.6}, {0.4, -0.5}, {0.8, infinity}}, {}, accuracy);
  CHECK((best.rate == 0.224 && best.tried[1].second == 0.6));
  CHECK(choice_among({{0.05, -0.2}, {0.1, -0.55}, {0.2, -0.6}, {0.4, -0.1}}, {}, accuracy).passed_over == 0.2);
  CHECK_THAT(rates_section({best}, "chosen", "").table.markdown(),
             contains("| lr | best val_accuracy |") && contains("| 0.224 | 0.6 | 0.2 | 4 |  |"));
  const TemporaryFolder folder;
  ValleyStudy study{.by = RateCriterion{"score", Better::higher}};
  trained_in(folder, study, with(three_judge, {"a"}));
  // The score is highest at 0.024 for both kinds, where the loss of neither is lowest.
  CHECK_THAT(timeless(file(folder, "a/results.csv")), contains("\na,0.024,1,ok,") && contains("\nb,0.024,1,ok,"));
  CHECK_THAT(file(folder, "a/rates.csv"),
             contains("kind,lr,seed,trial,score,chosen_lr\n") && contains("\na,0.024,0,search,1,0.024\n"));
  CHECK_THAT(file(folder, "a/results.md"), contains("around the one with the highest score"));
  const Words others{"--no-progress", "--seeds", "1..3", "--rates-from", "a", "--out"};
  trained_in(folder, study, with(others, {"f"}));
  CHECK(file(folder, "f/rates.csv") == file(folder, "a/rates.csv"));
  // A folder goes on by the value with which it began, and another value cannot be merged with it.
  study.by = {};
  study.bodies = 0;
  const std::string files = files_of(folder, "a");
  for (const char* mode : {"--rebuild", "--resume"}) {
    trained_in(folder, study, with(three_judge, {"a", mode}));
    CHECK(files_of(folder, "a") == files);
  }
  CHECK(study.bodies == 0);
  trained_in(folder, study, with(three_judge, {"l"}));
  CHECK_THAT(file(folder, "a/run.json"), contains("\"rates_by\""));
  CHECK_THAT(file(folder, "l/run.json"), !contains("rates_by"));

  study.by = RateCriterion{"nothing", Better::lower};
  const Ended missing = run_in(folder, study, with(others, {"m"}));
  CHECK(missing.status == 2);
  CHECK_THAT(missing.err, contains("--rates-from a: this study chooses learning rates by nothing, which no trial of"));
  const Ended none = run_in(folder, study, with(three_judge, {"n"}));
  CHECK(none.status == 1);
  CHECK_THAT(none.err, contains("compares nothing, which no trial of a measured") && contains("or give --at-lr"));
}

TEST_CASE("a failed trial stops the search of its method until it is tried again") {
  const TemporaryFolder folder;
  ValleyStudy study;
  bool fails = true;
  study.more = [&](lab::Trial& trial) {
    if (fails && trial.point().contains({{"kind", "a"}, {"lr", 0.006}})) throw Error("no");
  };
  CHECK(run_in(folder, study, with(three_judge, {"a"})).status == 1);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\nb,") && !contains("\na,"));
  trained_in(folder, study, with(three_judge, {"a", "--rebuild"}));
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\nb,") && !contains("\na,"));
  fails = false;
  trained_in(folder, study, with(three_judge, {"a", "--resume"}));
  CHECK_THAT(file(folder, "a/rates.csv"), contains("\na,0.012,0,search,1,0.012\n"));
}

TEST_CASE("the values of an axis can share one rate, chosen by the sum of their losses") {
  const TemporaryFolder folder;
  // The best rates of a are 0.012 and 0.003. Those of b are too, but with the value 1 it fails above 0.005.
  bool shares = true;
  ValleyStudy study{.declare =
                        [&](vision::Study& s) {
                          const auto epsilon = s.axis<std::int64_t>("--epsilons", {0, 1}, "Values");
                          if (shares) s.one_rate_for(epsilon);
                        },
                    .loss =
                        [](const Point& point, double rate) {
                          const bool one = point.contains({{"epsilon", 1}}), b = point.contains({{"kind", "b"}});
                          return one && b && rate > 0.005 ? infinity
                                                          : 1 + 0.01 * std::pow(valley(one ? 0.003 : 0.012)(rate), 2);
                        }};
  trained_in(folder, study, with(five_judge, {"a", "--warmup", "0"}));
  const std::string csv = timeless(file(folder, "a/results.csv"));
  CHECK_THAT(csv, contains("\na,0,0.006,1,ok,") && contains("\na,1,0.006,3,ok,"));
  CHECK(lines_of(csv) == 1 + 4 * 5);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("kind,epsilon,lr,seed,trial,train_loss,chosen_lr\na,,0.0015,0,") &&
                                              contains("\na,,0.006,0,search,2.02,0.006\n") &&
                                              contains("\nb,,0.006,0,search,,"));
  CHECK_THAT(csv, !contains("\nb,1,0.006,"));
  study.bodies = 0;
  trained_in(folder, study, with(five_judge, {"a", "--resume"}));
  CHECK(study.bodies == 0);
  // A shard has all values that share a rate.
  trained_in(folder, study, with(five_judge, {"s", "--shard", "1/2"}));
  const std::string shard = timeless(file(folder, "s/results.csv"));
  CHECK(lines_of(shard) == 1 + 2 * 5);
  CHECK(csv.starts_with(shard));
  trained_in(folder, study, {"--no-progress", "--seeds", "1..5", "--rates-from", "a", "--out", "f"});
  CHECK(timeless(file(folder, "f/results.csv")) == csv);
  CHECK(file(folder, "f/rates.csv") == file(folder, "a/rates.csv"));
  // The rates of a study whose values did not share them cannot be taken.
  shares = false;
  trained_in(folder, study, with(three_judge, {"own"}));
  shares = true;
  CHECK_THAT(
      run_in(folder, study, {"--no-progress", "--seeds", "4", "--rates-from", "own"}).err,
      contains("--rates-from own: each combination has a search of its own there, and this study gives a one rate"));
  // One value that fails everywhere leaves no rate.
  study.loss = [](const Point& point, double rate) {
    return point.contains({{"kind", "a"}, {"epsilon", 1}}) ? infinity : ValleyStudy::usual_loss(point, rate);
  };
  trained_in(folder, study, with(three_judge, {"none"}));
  CHECK_THAT(file(folder, "none/results.md"),
             contains("no rate trains: failed at each tried rate at one of the values that share it"));
}

TEST_CASE("the loser is trained at its neighbouring rates, once for all comparisons") {
  const TemporaryFolder folder;
  ValleyStudy study;
  const Ended e = trained_in(folder, study, with(five_judge, {"a"}));
  CHECK(study.bodies == 2 * 7 + 2 * 5 + 2 * 5);
  CHECK_THAT(e.out, contains("stands at its neighbours"));
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,agree,5,0,5,") && contains(",yes,"));
  const std::string ledger = file(folder, "a/ledger.jsonl"), rates = file(folder, "a/rates.csv");
  CHECK(count(ledger, "\"kind\":\"a\",\"lr\":0.00849,\"neighbour\":-1,\"seed\":") == 5);
  CHECK(count(ledger, "\"kind\":\"a\",\"lr\":0.017,\"neighbour\":1,\"seed\":") == 5);
  CHECK(count(rates, ",neighbour,") == 10);
  CHECK_THAT(rates, contains("\na,0.017,3,neighbour,1.05") && !contains("\nb,0.000691,"));
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 10);
  for (const char* name : {"a/results.csv", "a/results.md", "a/metrics.jsonl", "a/comparisons.csv"})
    CHECK_THAT(file(folder, name), !contains("0.00849") && !contains("0.017"));
  // Jobs give the same files. More seeds are trained at the neighbours, too.
  trained_in(folder, study, with(five_judge, {"j", "--jobs", "2"}));
  CHECK(files_of(folder, "j") == files_of(folder, "a"));
  study.bodies = 0;
  const Words six{"--no-progress", "--seeds", "0..6", "--out"};
  // An interrupted call keeps the neighbours of the five seeds in its files and verdicts.
  study.more = [&](lab::Trial& trial) {
    if (study.bodies != 2) return;
    interrupted_by(SIGINT);
    for ([[maybe_unused]] lab::Step& step : trial.loop()) {  // leaves the trial after the interrupt
    }
  };
  CHECK(run_in(folder, study, with(six, {"a", "--resume"})).status == 130);
  CHECK(count(file(folder, "a/rates.csv"), ",neighbour,") == 10);
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,agree,") && contains(",yes,"));
  study.more = {};
  trained_in(folder, study, with(six, {"a", "--resume"}));
  CHECK(study.bodies == 2 + 2 + 1);
  trained_in(folder, study, with(six, {"six"}));
  CHECK(files_of(folder, "a") == files_of(folder, "six"));
}

TEST_CASE("a better neighbour of the loser counts, and so does the next half octave") {
  const TemporaryFolder folder;
  // The judged trials of a are best at higher rates than its search, and better than b an octave above.
  ValleyStudy study{.loss = [](const Point& point, double rate) {
    return is_of_search(point) || point.contains({{"kind", "b"}}) ? ValleyStudy::usual_loss(point, rate)
                                                                  : 1 - 0.6 * std::log2(rate / 0.012);
  }};
  const Ended e = trained_in(folder, study, with(five_judge, {"a"}));
  CHECK_THAT(e.out, contains("does not stand at its neighbours"));
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,undecided,5,0,5,") && contains(",no,"));
  for (const auto& [step, trials] : std::map<int, std::size_t>{{-2, 0}, {-1, 5}, {1, 5}, {2, 5}})
    CHECK(count(file(folder, "a/ledger.jsonl"), fmt::format("\"neighbour\":{},", step)) == trials);
}

TEST_CASE("a neighbour beyond the bound of the rate is named and not trained") {
  const TemporaryFolder folder;
  ValleyStudy study{.declare = [](vision::Study& s) {
    s.axis<double>("--lrs", {0.001, 0.003, 0.01}, "Rates").above(0).at_most(0.015);
  }};
  CHECK_THAT(trained_in(folder, study, with(five_judge, {"a"})).out,
             contains("stands at its neighbours; above the chosen rate is beyond the bound"));
  const std::string ledger = file(folder, "a/ledger.jsonl");
  CHECK((count(ledger, "\"neighbour\":-1,") == 5 && count(ledger, "\"neighbour\":1,") == 0));
}

TEST_CASE("an interrupted search and interrupted neighbours take the same path when they are resumed") {
  const TemporaryFolder folder;
  ValleyStudy study;
  trained_in(folder, study, with(five_judge, {"whole"}));
  const int whole = study.bodies;
  for (const int stop : {1, 4, 9, 20, 27, 34}) {
    study.bodies = 0;
    study.more = [&](lab::Trial& trial) {
      if (study.bodies != stop) return;
      interrupted_by(SIGINT);
      for ([[maybe_unused]] lab::Step& step : trial.loop()) {  // leaves the trial after the interrupt
      }
    };
    const std::string out = "r" + std::to_string(stop);
    CHECK(run_in(folder, study, with(five_judge, {out})).status == 130);
    study.more = {};
    trained_in(folder, study, with(five_judge, {out, "--resume"}));
    CHECK(study.bodies == whole + 1);
    CHECK(files_of(folder, out) == files_of(folder, "whole"));
  }
}

TEST_CASE("a failed trial at a neighbouring rate is tried again") {
  const TemporaryFolder folder;
  ValleyStudy study;
  trained_in(folder, study, with(five_judge, {"whole"}));
  study.more = [&](lab::Trial& trial) {
    if (trial.point().contains({{neighbour_steps, 1}, {"seed", 3}})) throw Error("no");
  };
  CHECK(run_in(folder, study, with(five_judge, {"a"})).status == 1);
  study.more = {}, study.bodies = 0;
  trained_in(folder, study, with(five_judge, {"a", "--resume"}));
  CHECK(study.bodies == 1);
  CHECK(files_of(folder, "a") == files_of(folder, "whole"));
}

TEST_CASE("a shard chooses the same rates and trains no neighbours, which --resume of the merged folder does") {
  const TemporaryFolder folder;
  ValleyStudy study{.declare = [](vision::Study& s) { s.axis<std::int64_t>("--sizes", {1, 2}, "Sizes"); }};
  trained_in(folder, study, with(five_judge, {"whole"}));
  const std::string csv = timeless(file(folder, "whole/results.csv")),
                    note = " are missing, and so are some verdicts; ";
  copy_folder(folder, "whole", "m", [](const Point&) { return false; });  // the settings of a shard have --shard
  for (const std::string shard : {"1", "2"}) {                            // both kinds, of one size
    const Ended e = trained_in(folder, study, with(five_judge, {"s" + shard, "--shard", shard + "/2"}));
    CHECK_THAT(e.err, contains(note + "merge the shards, and --resume the merged folder"));
    CHECK_THAT(file(folder, "s" + shard + "/claims.csv"), contains("undecided,5,0,5,") && contains(",not trained,"));
    std::istringstream rows(timeless(file(folder, "s" + shard + "/results.csv")));
    for (std::string row; std::getline(rows, row);) CHECK_THAT(csv, contains(row + "\n"));
    copy_folder(folder, "s" + shard, "m", [](const Point& point) { return !is_neighbour(point); });
    CHECK(Ledger(folder / "m/ledger.jsonl").entries().size() == (shard == "1" ? 24 : 48));
  }
  CHECK_THAT(trained_in(folder, study, with(five_judge, {"m", "--rebuild"})).err,
             contains(note + "--resume trains them"));
  study.bodies = 0;
  trained_in(folder, study, with(five_judge, {"m", "--resume"}));
  CHECK(study.bodies == 2 * 2 * 5);
  CHECK(files_of(folder, "m") == files_of(folder, "whole"));
}

TEST_CASE("an old folder goes on without a parabola, shared rates, neighbours and verdicts") {
  const TemporaryFolder folder;
  bool shares = false;
  ValleyStudy study{.declare = [&](vision::Study& s) {
    const auto epsilon = s.axis<std::int64_t>("--epsilons", {0}, "Values");
    if (shares) s.one_rate_for(epsilon);
  }};
  trained_in(folder, study, with(three_judge, {"new"}));
  copy_folder(folder, "new", "old", is_of_search);
  StudyDescription run = StudyDescription::parse(file(folder, "old/run.json"), "old");
  CHECK(run.rule == "bets");
  run.rule.clear();
  write_file_atomically(folder / "old/run.json", run.text());
  study.bodies = 0, shares = true;
  const Ended e = trained_in(folder, study, with(five_judge, {"old", "--resume"}));
  CHECK(study.bodies == 2 * 5);
  CHECK_THAT(timeless(file(folder, "old/results.csv")), contains("\nb,0,0.00106,1,ok,"));
  CHECK_THAT(file(folder, "old/rates.csv"), contains("\nb,0,0.00106,0,search,"));
  CHECK_THAT(e.out, contains("old trials") && contains("5:0") && contains("old trials: neighbours not trained"));
  CHECK_THAT(file(folder, "old/claims.csv"), contains("b is lower,a test,undecided,5,0,5,"));
  CHECK_THAT(file(folder, "old/run.json"), !contains("\"rule\""));
}

TEST_CASE("the option --dry-run lists the known trials of a search and counts the others") {
  const TemporaryFolder folder;
  ValleyStudy study;
  const Ended e = trained_in(folder, study, {"--seeds", "0..3", "--dry-run"});
  CHECK_THAT(e.out,
             contains("a lr 0.0015 search_steps 5 seed 0\n") && contains("b lr 0.006 search_steps 5 seed 0\n") &&
                 contains("search: about 6 trials of 5 steps for each of 2 combinations, of which the first 3 are "
                          "listed; then 6 trials of 9 steps at the chosen rates, and 6 trials at neighbouring rates "
                          "for each combination that loses a comparison\n") &&
                 contains("about 18 trials: 114 steps, "));
  CHECK_THAT(trained_in(folder, study, {"--seeds", "0..2", "--dry-run"}).out,
             contains("\n6 trials of 9 steps") && !contains("search"));
}
