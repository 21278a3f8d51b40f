#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("deep_mlp trains each method and prints a row for each") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(),
          program("deep_mlp") + " --depths 3 --width 8 --batch 4 --steps 5 --seeds 0..1 --no-progress --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  for (const char* word : {"vanilla", "residual", "layer_norm", "rezero", "epoch_1", "jacobian_start", "±"})
    CHECK_THAT(f.out, contains(word));
  const std::string csv = slurp(folder / "a/results.csv");
  CHECK(csv.starts_with(
      "method,depth,seed,status,steps,seconds,train_loss,jacobian_start,jacobian_start_error,jacobian_end,epoch_1\n"));
  const auto rows = rows_of(csv);
  REQUIRE(rows.size() == 8);
  for (const auto& row : rows) {
    // The Jacobian of rezero at the start is the identity.
    CHECK((row.at("jacobian_start") == "1") == (row.at("method") == "rezero"));
    CHECK(std::stod(row.at("jacobian_end")) > 0);
    // epoch_1 is the mean loss over the trained steps of the epoch. train_loss is the mean over the last 20 steps. Here
    // both means are over the same five steps.
    CHECK(std::stod(row.at("epoch_1")) == Approx(std::stod(row.at("train_loss"))));
  }
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
