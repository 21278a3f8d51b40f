#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string small_mlp = program("deep_mlp") + " --depths 3 --width 8 --batch 4 --steps 5 --no-progress ";

// The rows of results.csv, without the column of times.
std::vector<std::map<std::string, std::string>> results_in(const std::filesystem::path& folder) {
  auto rows = rows_of(slurp(folder / "results.csv"));
  for (auto& row : rows) row.erase("seconds");
  return rows;
}

}  // namespace

TEST_CASE("deep_mlp trains each method and prints a row for each and gives the same losses each time") {
  const TemporaryFolder folder;
  const Finished first = run(folder.path(), small_mlp + "--seeds 0..1 --out a");
  INFO(first.err);
  REQUIRE(first.status == 0);
  for (const char* word : {"vanilla", "residual", "layer_norm", "rezero", "train_loss", "epoch_1", "jacobian_start",
                           "±", "report: a/report.html"})
    CHECK_THAT(first.out, contains(word));
  const auto rows = results_in(folder / "a");
  REQUIRE(rows.size() == 8);
  for (const auto& row : rows) {
    CHECK(row.at("status") == "ok");
    CHECK(row.at("steps") == "5");
    // The Jacobian of rezero at the start is the identity.
    CHECK((row.at("jacobian_start") == "1") == (row.at("method") == "rezero"));
    CHECK(std::stod(row.at("jacobian_end")) > 0);
    // epoch_1 is the mean loss over the trained steps of the epoch. train_loss is the mean over the last 20 steps. Here
    // both means are over the same five steps.
    CHECK(std::stod(row.at("epoch_1")) == Approx(std::stod(row.at("train_loss"))));
  }
  CHECK(slurp(folder.path() / "a/results.csv")
            .starts_with("method,depth,seed,status,steps,seconds,train_loss,jacobian_start,jacobian_start_error,"
                         "jacobian_end,epoch_1\nvanilla,3,0,ok,5,"));
  const std::string metrics = slurp(folder.path() / "a/metrics.jsonl");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 8 * 5);
  CHECK_THAT(slurp(folder.path() / "a/report.html"), contains("<th>method</th>") && contains("jacobian_end"));

  REQUIRE(run(folder.path(), small_mlp + "--seeds 0..1 --out b --threads 1 --jobs 2").status == 0);
  CHECK(results_in(folder / "b") == rows);
  CHECK(slurp(folder.path() / "b/metrics.jsonl") == metrics);
}

TEST_CASE("deep_mlp: an epoch has as many batches as the data set and every epoch with a step has a mean") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(),
          program("deep_mlp") +
              " --methods rezero --depths 2 --width 8 --batch 6400 --steps 5 --seeds 0 --no-progress --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  std::vector<double> losses;
  std::istringstream lines(slurp(folder / "a/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) losses.push_back(nlohmann::json::parse(line)["loss"]);
  REQUIRE(losses.size() == 5);
  const auto row = rows_of(slurp(folder / "a/results.csv")).at(0);
  CHECK(std::stod(row.at("epoch_1")) == Approx((losses[0] + losses[1]) / 2));
  CHECK(std::stod(row.at("epoch_2")) == Approx((losses[2] + losses[3]) / 2));
  CHECK(std::stod(row.at("epoch_3")) == Approx(losses[4]));
  CHECK_FALSE(row.contains("epoch_5"));
}

TEST_CASE("deep_mlp resumes only the missing trials") {
  const TemporaryFolder folder;
  const std::string command = small_mlp + "--methods vanilla,rezero --seeds 0 --out a ";
  REQUIRE(run(folder.path(), command).status == 0);
  const std::string csv = slurp(folder.path() / "a/results.csv"), ledger = slurp(folder.path() / "a/ledger.jsonl");
  CHECK(run(folder.path(), command).status == 2);
  REQUIRE(run(folder.path(), command + "--resume").status == 0);
  // The files are equal in every byte, including seconds, so no trial ran again.
  CHECK(slurp(folder.path() / "a/results.csv") == csv);
  const std::string second = ledger.substr(ledger.find('\n') + 1);
  { std::ofstream(folder.path() / "a/ledger.jsonl") << second; }
  REQUIRE(run(folder.path(), command + "--resume").status == 0);
  CHECK(slurp(folder.path() / "a/ledger.jsonl").starts_with(second));
  CHECK(rows_of(slurp(folder / "a/results.csv")).at(0).at("method") == "vanilla");
}

TEST_CASE("deep_mlp: divergence is a result and --json prints JSON") {
  const TemporaryFolder folder;
  const Finished f = run(folder.path(), small_mlp + "--methods vanilla,rezero --seeds 0 --lr 1e30 --json --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.err, contains("diverged at step"));
  const auto json = nlohmann::json::parse(f.out);
  REQUIRE(json["results"].size() == 2);
  for (const auto& row : json["results"]) {
    CHECK(row["status"] == "diverged");
    CHECK(row["train_loss"].is_null());
    CHECK_FALSE(row.contains("epoch_1"));
    CHECK(row["jacobian_start"].is_number());
  }
  CHECK_THAT(run(folder.path(), small_mlp + "--methods vanilla --seeds 0..1 --lr 1e30").out,
             contains("2 of 2 diverged"));
}

TEST_CASE("deep_mlp refuses errors on its command line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& flags) {
    const Finished f = run(folder.path(), program("deep_mlp") + " " + flags);
    CHECK(f.status == 2);
    CHECK(f.out.empty());
    return f.err;
  };
  CHECK_THAT(refused("--methods rezeno"), contains("rezero"));
  CHECK_THAT(refused("--depths 0"), contains("--depths"));
  CHECK_THAT(refused("--width 0"), contains("--width"));
  CHECK_THAT(refused("--lr 0"), contains("--lr"));
  CHECK_THAT(refused("--data fashon-mnist"), contains("fashion-mnist"));
  CHECK(run(folder.path(), program("deep_mlp") + " --dry-run --depths 8,64")
            .out.starts_with("vanilla depth 8 seed 0\nvanilla depth 8 seed 1\n"));
}
