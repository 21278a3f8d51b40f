// Tests of --until-decided and --budget.
#include "experiments/lab/study/until_decided.h"

#include <signal.h>

#include <atomic>
#include <cmath>

#include "core/random.h"
#include "experiments/lab/stats/bets.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

// A number in [-1, 1) that depends on the seed and the kind of a trial.
double noise(const Point& point) {
  const auto seed = static_cast<std::uint64_t>(point.get<std::int64_t>("seed"));
  return 2 * (static_cast<double>(random_key(seed, point.get<std::string>("kind")) >> 11) * 0x1p-53) - 1;
}

// Kind b is better than kind a by `lead`, and the noise of each has this size.
ValleyStudy noisy(double lead, double size) {
  return {.loss = [=](const Point& point, double) {
    return 1 - (point.contains({{"kind", "b"}}) ? lead : 0) + size * noise(point);
  }};
}

Words until(const Words& more) {
  return with({"--no-progress", "--at-lr", "0.003", "--seeds", "0..5", "--until-decided"}, more);
}

std::string files_of(const TemporaryFolder& folder, const std::string& out) {
  std::string all = timeless(file(folder, out + "/results.csv"));
  for (const char* name : {"/claims.csv", "/comparisons.csv", "/rates.csv", "/results.md", "/metrics.jsonl"})
    if (std::filesystem::exists(folder / (out + name))) all += file(folder, out + name);
  return all;
}

// The cell of claims.csv in this column, for the only claim.
std::string claimed(const TemporaryFolder& folder, const std::string& out, std::size_t column) {
  std::istringstream lines(file(folder, out + "/claims.csv"));
  std::string line, cell;
  std::getline(lines, line), std::getline(lines, line);
  std::istringstream cells(line);
  for (std::size_t i = 0; i <= column; ++i) std::getline(cells, cell, ',');
  return cell;
}

}  // namespace

TEST_CASE("the predicted number of bets is the logarithm of the evidence over its growth") {
  // The capital that bets 0.9 grows fastest if 6.5 of 7 bets are won.
  const double growth = 6.5 / 7 * std::log(1.8) + 0.5 / 7 * std::log(0.2);
  CHECK(predicted_bets(6, 6, 20) == Approx(std::log(20) / growth));
  CHECK(predicted_bets(3, 6, 20) == INFINITY);
  CHECK(predicted_bets(24, 24, 20) < predicted_bets(6, 6, 20));
  CHECK(predicted_bets(8, 12, 20) > 48);
}

TEST_CASE("further seeds are trained until a claim is decided") {
  const TemporaryFolder folder;
  ValleyStudy study = noisy(0.5, 0.6);
  const Ended e = trained_in(folder, study, until({"--out", "a"}));
  const long seeds = std::stol(claimed(folder, "a", 5));
  CHECK(claimed(folder, "a", 2) == "agree");
  CHECK((seeds > 6 && seeds < horizon));
  CHECK(study.bodies == 2 * seeds);
  CHECK_THAT(e.out, contains("Comparisons until decided") && contains(" decided "));
  // A decided study has nothing to do. Its tables can be made again.
  trained_in(folder, study, until({"--out", "a", "--resume"}));
  CHECK(study.bodies == 2 * seeds);
  const std::string files = files_of(folder, "a");
  trained_in(folder, study, {"--out", "a", "--rebuild"});
  CHECK(files_of(folder, "a") == files);
  // Six seeds are too few for this claim.
  ValleyStudy planned = noisy(0.5, 0.6);
  trained_in(folder, planned, {"--no-progress", "--at-lr", "0.003", "--seeds", "0..5", "--out", "six"});
  CHECK(claimed(folder, "six", 2) == "undecided");
  // A study without the option goes on with it.
  trained_in(folder, planned, {"--no-progress", "--out", "six", "--resume", "--until-decided"});
  CHECK(files_of(folder, "six") == files);
}

TEST_CASE("a budget changes only the moment at which the rounds end") {
  const TemporaryFolder folder;
  ValleyStudy study = noisy(0.5, 0.6);
  const Ended first = trained_in(folder, study, until({"--out", "a", "--budget", "5"}));
  CHECK(study.bodies == 5);
  CHECK_THAT(first.err,
             contains("the budget is spent, and 7 trials of this round are not begun; --resume goes on, in a"));
  trained_in(folder, study, until({"--out", "ten", "--budget", "10"}));
  trained_in(folder, study, {"--no-progress", "--out", "a", "--resume", "--budget", "5"});
  CHECK(files_of(folder, "a") == files_of(folder, "ten"));
  study.bodies = 0;
  trained_in(folder, study, until({"--out", "hours", "--budget", "0.0000000001h"}));
  CHECK(study.bodies == 1);  // however short the time is, a call makes progress
}

TEST_CASE("a budget, an interrupt and jobs change no trial, also of searches and neighbouring rates") {
  // The noise leaves the claim open after six seeds, and the loser has neighbours.
  ValleyStudy study{.loss = [](const Point& point, double rate) {
    return ValleyStudy::usual_loss(point, rate) + 0.5 * noise(point);
  }};
  const TemporaryFolder folder;
  const auto resumed = [](const Words& more) { return with({"--no-progress", "--out", "a", "--resume"}, more); };
  trained_in(folder, study, with(five_judge, {"whole", "--until-decided"}));
  const int whole = study.bodies;
  CHECK(std::stol(claimed(folder, "whole", 5)) > 6);
  CHECK(count(file(folder, "whole/ledger.jsonl"), "\"neighbour\":") > 0);
  study.bodies = 0;
  trained_in(folder, study, with(five_judge, {"a", "--until-decided", "--budget", "4"}));  // within the searches
  std::atomic<int> interrupts = 0;
  study.more = [&](lab::Trial& trial) {
    if (!trial.point().find("neighbour") || interrupts++ > 0) return;
    interrupted_by(SIGINT);
    for ([[maybe_unused]] lab::Step& step : trial.loop()) continue;
  };
  CHECK(run_in(folder, study, resumed({})).status == 130);
  trained_in(folder, study, resumed({"--budget", "3", "--jobs", "2"}));
  trained_in(folder, study, resumed({"--budget", "1h", "--jobs", "2"}));
  CHECK(interrupts > 1);
  CHECK(study.bodies == whole + 1);
  CHECK(files_of(folder, "a") == files_of(folder, "whole"));
}

TEST_CASE("a claim ends if it would need more than 48 seeds") {
  const TemporaryFolder folder;
  ValleyStudy study = noisy(0, 5);
  const Ended e = trained_in(folder, study, until({"--out", "a"}));
  CHECK(claimed(folder, "a", 2) == "undecided");
  CHECK(study.bodies < 2 * horizon);
  CHECK_THAT(e.out, contains("needs more than 48 seeds"));
}

TEST_CASE("two arms that both diverge at each seed train no further seeds") {
  const TemporaryFolder folder;
  ValleyStudy study{.loss = [](const Point&, double) { return INFINITY; }};
  trained_in(folder, study, until({"--out", "a"}));
  CHECK(study.bodies == 2 * 6);
}

TEST_CASE("a claim ends if the loser is better at another rate, and three seeds do not change that") {
  const TemporaryFolder folder;
  // The judged trials of a are best at higher rates than its search, and better than b an octave above.
  ValleyStudy study{.loss = [](const Point& point, double rate) {
    return is_of_search(point) || point.contains({{"kind", "b"}}) ? ValleyStudy::usual_loss(point, rate)
                                                                  : 1 - 0.6 * std::log2(rate / 0.012);
  }};
  const Ended e = trained_in(folder, study, with(five_judge, {"a", "--until-decided"}));
  CHECK_THAT(e.out, contains("undecided: the rate of the better side"));
  CHECK(claimed(folder, "a", 2) == "undecided");
  CHECK(claimed(folder, "a", 5) == "8");
  const std::string ledger = file(folder, "a/ledger.jsonl");
  for (const int step : {-1, 1, 2}) CHECK(count(ledger, fmt::format("\"neighbour\":{},", step)) == 8);
}

TEST_CASE("errors and the dry run of --until-decided") {
  const TemporaryFolder folder;
  ValleyStudy study = noisy(0.5, 0.6);
  const auto refused = [&](const Words& words) {
    const Ended e = run_in(folder, study, words);
    CHECK(e.status == 2);
    return e.err;
  };
  CHECK_THAT(refused(until({"--shard", "1/2", "--out", "a"})), contains("join them with bin/merge"));
  CHECK_THAT(refused({"--budget", "5", "--out", "a"}), contains("--budget ends the rounds of --until-decided"));
  for (const char* budget : {"0", "-3", "2.5", "h", "five", "4d", "1e30"})
    CHECK_THAT(refused(until({"--budget", budget, "--out", "a"})),
               contains("--budget: expected a number of trials, such as 50, or of hours, such as 4h, got '"));
  CHECK_THAT(trained_in(folder, study, until({"--dry-run"})).out,
             contains("12 trials") && contains("until decided: this is the least; the most is 96 trials, with about "));
  CHECK_THAT(trained_in(folder, study, with(five_judge, {"own", "--until-decided", "--dry-run"})).out,
             contains("the most is 492 trials"));
  // A call that goes on: the next round is the least. A decided study costs nothing.
  study.more = [](lab::Trial& trial) {
    for ([[maybe_unused]] lab::Step& step : trial.loop()) break;
  };
  trained_in(folder, study, until({"--out", "a", "--budget", "12"}));
  const Words resumed{"--out", "a", "--resume", "--dry-run"};
  CHECK_THAT(trained_in(folder, study, resumed).out,
             contains("a seed 6") && contains("2 trials") && contains("the most is 84 trials"));
  trained_in(folder, study, {"--no-progress", "--out", "a", "--resume"});
  CHECK_THAT(trained_in(folder, study, resumed).out,
             contains("no comparison of 1 is open") && contains("0 trials to run") && !contains("the most"));
}
