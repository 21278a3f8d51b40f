#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/deep_mlp/records.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string small = program("deep_mlp") + " --depths 3 --width 8 --batch 4 --steps 5 --no-progress ";

std::vector<lab::MlpRecord> records_in(const std::filesystem::path& file) { return lab::parse_records(slurp(file), file.string()); }

}  // namespace

TEST_CASE("deep_mlp trains each method, prints one row for each, and gives the same losses again") {
  const TemporaryFolder folder;
  const Finished first = run(folder.path(), small + "--seeds 0..1 --out a");
  INFO(first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.out, contains("epoch 1 was trained for 5 of its 3200 steps") && contains("folder: a"));
  for (const char* word : {"vanilla", "residual", "layer_norm", "rezero", "epoch 1", "last 20 steps", "diverged", "J at start", "±"})
    CHECK_THAT(first.out, contains(word));
  const auto records = records_in(folder.path() / "a/metrics.jsonl");
  REQUIRE(records.size() == 8);
  for (const auto& r : records) {
    CHECK(r.losses.size() == 5);
    CHECK_FALSE(r.diverged);
    CHECK((r.start.value == 1) == (r.arm.method == "rezero"));  // the identity
    CHECK(r.end.value > 0);
  }
  CHECK(slurp(folder.path() / "a/results.csv")
            .starts_with("method,depth,seed,status,steps,train_loss,jacobian_start,jacobian_start_error,jacobian_end,seconds\nvanilla,3,0,ok,5,"));

  REQUIRE(run(folder.path(), small + "--seeds 0..1 --out b --threads 1").status == 0);
  const auto again = records_in(folder.path() / "b/metrics.jsonl");
  REQUIRE(again.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(again[i].losses == records[i].losses);
    CHECK(again[i].start.value == records[i].start.value);
  }
}

TEST_CASE("deep_mlp resumes what is missing and repeats nothing") {
  const TemporaryFolder folder;
  const std::string command = small + "--methods vanilla,rezero --seeds 0 --out a ";
  REQUIRE(run(folder.path(), command).status == 0);
  const std::string metrics = slurp(folder.path() / "a/metrics.jsonl");
  CHECK(run(folder.path(), command).status == 2);
  const Finished complete = run(folder.path(), command + "--resume");
  CHECK(complete.status == 0);
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == metrics);  // to the last byte, seconds too: nothing ran
  const std::string second = metrics.substr(metrics.find('\n') + 1);
  { std::ofstream(folder.path() / "a/metrics.jsonl") << second; }
  REQUIRE(run(folder.path(), command + "--resume").status == 0);
  const auto records = records_in(folder.path() / "a/metrics.jsonl");
  REQUIRE(records.size() == 2);
  CHECK(records[0].arm.method == "vanilla");
  CHECK(slurp(folder.path() / "a/metrics.jsonl").ends_with(second));
  { std::ofstream(folder.path() / "a/metrics.jsonl") << "{}\n"; }
  const Finished broken = run(folder.path(), command + "--resume");
  CHECK(broken.status == 1);
  CHECK_THAT(broken.err, contains("a/metrics.jsonl line 1: expected one run of deep_mlp as a JSON object, got \"{}\""));
}

TEST_CASE("deep_mlp: Ctrl-C ends with 130, keeps what is finished, and the rest can be resumed to the same losses") {
  const TemporaryFolder folder;
  const std::string command = program("deep_mlp") + " --depths 3 --width 8 --batch 4 --steps 600 --no-progress --seeds 0 --out ";
  const Finished stopped =
      run(folder.path(), command + "a & pid=$!; until [ -s a/results.csv ] || ! kill -0 $pid; do sleep 0.02; done; kill -INT $pid; wait $pid");
  INFO(stopped.err);
  REQUIRE(stopped.status == 130);
  CHECK_THAT(stopped.err, contains("runs are finished; go on with --resume --out a"));
  const std::size_t finished = records_in(folder.path() / "a/metrics.jsonl").size();
  CHECK((finished >= 1 && finished < 4));
  REQUIRE(run(folder.path(), command + "a --resume").status == 0);
  REQUIRE(run(folder.path(), command + "b").status == 0);
  const auto resumed = records_in(folder.path() / "a/metrics.jsonl"), whole = records_in(folder.path() / "b/metrics.jsonl");
  REQUIRE(resumed.size() == 4);
  REQUIRE(whole.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(resumed[i].arm == whole[i].arm);
    CHECK(resumed[i].losses == whole[i].losses);
  }
}

TEST_CASE("deep_mlp: divergence is a result, and --json is JSON") {
  const TemporaryFolder folder;
  const Finished f = run(folder.path(), small + "--methods vanilla,rezero --seeds 0 --lr 1e30 --json --out a");
  INFO(f.err);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.err, contains("diverged at step"));
  const auto json = nlohmann::json::parse(f.out);
  REQUIRE(json["results"].size() == 2);
  for (const auto& row : json["results"]) {
    CHECK(row["status"] == "diverged");
    CHECK(row["train_loss"].is_null());
    CHECK(row["epoch_losses"]["1"].is_null());
    CHECK(row["jacobian_start"].is_number());
  }
  CHECK_THAT(run(folder.path(), small + "--methods vanilla --seeds 0..1 --lr 1e30").out, contains("2 of 2"));
}

TEST_CASE("deep_mlp refuses what is wrong on its command line") {
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
  CHECK(run(folder.path(), program("deep_mlp") + " --dry-run --depths 8,64").out.starts_with("vanilla depth 8 seed 0\nvanilla depth 8 seed 1\n"));
}

TEST_CASE("epoch means of a record count whole epochs, and a diverged run has none for the epoch it ended in") {
  lab::MlpRecord r;
  r.arm = {"rezero", 64, 7};
  r.losses = {1, 2, 3, 4, 5};
  CHECK(r.epoch_loss(1, 2) == 1.5);
  CHECK(r.epoch_loss(2, 2) == 3.5);
  CHECK(r.epoch_loss(3, 2) == 5);  // begun
  CHECK(std::isnan(r.epoch_loss(4, 2)));
  CHECK(r.last_loss() == 3);
  r.diverged = true;
  CHECK(r.epoch_loss(2, 2) == 3.5);
  CHECK(std::isnan(r.epoch_loss(3, 2)));
  CHECK(std::isnan(r.last_loss()));
  CHECK(lab::shown_epochs(300, 600) == std::vector<std::int64_t>{1});
  CHECK(lab::shown_epochs(600, 600) == std::vector<std::int64_t>{1});
  CHECK(lab::shown_epochs(601, 600) == std::vector<std::int64_t>{1, 2});
  CHECK(lab::shown_epochs(6000, 600) == std::vector<std::int64_t>{1, 2, 3, 5, 10});
  r.losses.back() = std::nan("");
  r.start = {.value = 2.5, .standard_error = 0.25, .exact = false};
  const std::string line = lab::format_record(r);
  CHECK(lab::format_record(lab::parse_records(line, "m").at(0)) == line);
}
