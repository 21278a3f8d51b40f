// Tests of the options for learning rates: --at-lr, --rates-from, and the rule of a resumed study folder.
#include "experiments/lab/study/own_rates.h"

#include <nlohmann/json.hpp>

#include "experiments/lab/record/study_description.h"
#include "experiments/vision/study.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

nlohmann::json settings_of(const TemporaryFolder& folder, const std::string& out) {
  return nlohmann::json::parse(file(folder, out + "/run.json"))["settings"];
}

}  // namespace

TEST_CASE("without a search all trials train at the rates of the call") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = GENERATE(true, false)};
  const auto csv = [&](const Words& words) {
    trained_in(folder, study, with({"--no-progress", "--out", "a", "--overwrite"}, words));
    CHECK_FALSE(std::filesystem::exists(folder / "a/rates.csv"));
    CHECK_THAT(file(folder, "a/ledger.jsonl"), !contains("search_steps") && !contains("neighbour"));
    return file(folder, "a/results.csv");
  };
  // Fewer than four seeds, or one combination.
  CHECK(lines_of(csv({"--seeds", "0..2"})) == 1 + 2 * 3 * (study.axis ? 3 : 1));
  CHECK(settings_of(folder, "a")["at_lr"] == (study.axis ? nlohmann::json{0.001, 0.003, 0.01} : nlohmann::json{0.003}));
  CHECK(lines_of(csv({"--seeds", "0..3", "--kinds", "a"})) == 1 + 4 * (study.axis ? 3 : 1));
  // --at-lr, or values of the axis on the command line. A verdict then holds at this rate.
  const std::string at = csv({"--seeds", "0..5", "--at-lr", "0.004"});
  CHECK(lines_of(at) == 1 + 2 * 6);
  CHECK_THAT(file(folder, "a/claims.csv"), contains("b is lower,a test,agree,6,0,6,") && contains(",at this rate,"));
  if (study.axis) {
    CHECK_THAT(at, contains("\nb,0.004,3,ok,"));
    CHECK(timeless(csv({"--seeds", "0..5", "--lrs", "0.004"})) == timeless(at));
    CHECK(lines_of(csv({"--seeds", "0..3", "--at-lr", "0.004,0.008"})) == 1 + 2 * 2 * 4);
  } else {
    CHECK(settings_of(folder, "a")["lr"] == 0.004);
    CHECK_THAT(at, contains("\nb,3,ok,"));
  }
}

TEST_CASE("the option --rates-from trains at the rates that an earlier study chose") {
  const TemporaryFolder folder;
  ValleyStudy study;
  trained_in(folder, study, with(five_judge, {"a"}));
  const std::string csv = timeless(file(folder, "a/results.csv"));
  std::filesystem::copy_file(folder / "a/ledger.jsonl", folder / "kept.jsonl");
  const Words others{"--no-progress", "--seeds", "1..5", "--out"};
  for (const std::string from : {"a", "a/ledger.jsonl", "kept.jsonl"}) {
    study.bodies = 0;
    trained_in(folder, study, with(others, {"f", "--overwrite", "--rates-from", from}));
    CHECK(study.bodies == 2 * 5 + 2 * 5);  // with the neighbours of the loser
    CHECK(timeless(file(folder, "f/results.csv")) == csv);
    for (const char* name : {"/rates.csv", "/claims.csv"})
      CHECK(file(folder, "f" + std::string(name)) == file(folder, "a" + std::string(name)));
    CHECK_THAT(file(folder, "f/results.md"), contains("Learning rates, taken from " + from) && contains("(seed 0)"));
  }
  // The folder has copies of the trials that chose, so it can be shown and resumed without the file.
  std::filesystem::remove_all(folder / "kept.jsonl");
  trained_in(folder, study, with(others, {"f", "--rebuild"}));
  CHECK(timeless(file(folder, "f/results.csv")) == csv);
  study.bodies = 0;
  trained_in(folder, study, {"--no-progress", "--seeds", "1..6", "--out", "f", "--resume"});
  CHECK(study.bodies == 2 + 2);
  CHECK_THAT(timeless(file(folder, "f/results.csv")), contains("\nb,0.000977,6,ok,"));
  // One seed is enough.
  trained_in(folder, study, {"--no-progress", "--seeds", "7", "--out", "one", "--rates-from", "a"});
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
          return study.run(argc, argv, [&](lab::Trial& trial) {
            const double rate = trial.point().get<double>("lr");
            trial.measure({{"train_loss", valley(trial[kind] == "a" ? 0.012 : 0.001)(rate)}});
          });
        },
        words);
  };
  REQUIRE(outcome(with(three_judge, {"a"})).status == 0);
  const Ended e = outcome({"--no-progress", "--seeds", "4", "--out", "f", "--rates-from", "a"});
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(file(folder, "a/rates.csv"), contains("kind,depth,lr,seed,trial,train_loss,chosen_lr\n"));
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
  trained_in(folder, study, {"--no-progress", "--seeds", "0", "--out", "plain"});
  CHECK_THAT(refused({"--rates-from", "none"}), contains("--rates-from none: there is no none; give a study folder"));
  CHECK_THAT(refused({"--rates-from", "plain"}),
             contains("--rates-from plain: no trial of a search for learning rates is in it"));
  trained_in(folder, study, with(three_judge, {"b", "--shard", "2/2"}));
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
  const Ended taken = trained_in(
      folder, study, {"--no-progress", "--out", "t", "--rates-from", "both.jsonl", "--seeds", "5", "--kinds", "b"});
  CHECK_THAT(taken.err, !contains("kept but not used"));
  CHECK_THAT(timeless(file(folder, "t/results.csv")), contains("b,0.000977,5,ok,"));
  // A typed rate replaces the fixed rate of a configuration file.
  trained_in(folder, study, {"--no-progress", "--out", "fixed", "--at-lr", "0.001", "--seeds", "0"});
  trained_in(folder, study, {"--no-progress", "--out", "typed", "--config", "fixed/run.json", "--lr", "0.006"});
  CHECK(settings_of(folder, "typed")["at_lr"] == nlohmann::json{0.006});
  // The searches of two seeds are no single choice.
  trained_in(folder, study, {"--no-progress", "--seeds", "4..7", "--out", "c"});
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

TEST_CASE("a resumed study folder goes on by its own rule for learning rates") {
  const TemporaryFolder folder;
  ValleyStudy study{.axis = true};
  const auto err = [&](const Words& words) {
    const Ended e = run_in(folder, study, with({"--no-progress", "--resume", "--out"}, words));
    CHECK(e.status == 2);
    return e.err;
  };
  trained_in(folder, study, with(three_judge, {"search"}));
  CHECK_THAT(err({"search", "--seeds", "1..5"}),
             contains("--seeds begins with 1, but seed 0 chose the learning rates of search"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--at-lr", "0.1"}),
             contains("--at-lr: each method of search trains at its own learning rate"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--lrs", "0.1"}), contains("--lrs: each method of search trains"));
  CHECK_THAT(err({"search", "--seeds", "0..3", "--rates-from", "search"}),
             contains("--rates-from: a search chose the learning rates of search"));
  // A study that began with three seeds has no search, even with more seeds.
  study.axis = false;
  trained_in(folder, study, {"--no-progress", "--seeds", "0..2", "--out", "fixed"});
  study.bodies = 0;
  const Ended more = trained_in(folder, study, {"--no-progress", "--seeds", "0..3", "--out", "fixed", "--resume"});
  CHECK(study.bodies == 2);
  CHECK_THAT(more.err, contains("the trials of fixed train at fixed learning rates, and so does this call"));
  CHECK_THAT(err({"fixed", "--rates-from", "search"}),
             contains("--rates-from: the trials of fixed train at fixed learning rates"));
}

TEST_CASE("the rule for learning rates in words") {
  StudyDescription run{.rule = rule_of_judging};
  run.settings.json = {{"seeds", {3, 4}}, {"at_lr", {0.1}}};
  CHECK(rule_for_rates(run) == "the same rates for all methods");
  run.settings.json["at_lr"] = nlohmann::json::array();
  CHECK(rule_for_rates(run) == "a search by seed 3");
  run.facts.rates_by = {"score", Better::higher}, run.settings.json["rates_from"] = "a";
  CHECK(rule_for_rates(run) == "the rates of a for the best score");
  run.rule.clear();
  CHECK(rule_for_rates(run) == "the rates of a for the best score, by the rule of older folders");
}
