#include <nlohmann/json.hpp>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string bench_step =
    program("bench_step") + " --dim 8 --heads 2 --depth 2 --patch 16 --batch 2 --classes 3 --steps 2 --warmup 1 ";

// The JSON object in the last line of a program's output.
nlohmann::json last_json(const std::string& text) {
  REQUIRE(text.ends_with('\n'));
  const std::size_t before = text.rfind('\n', text.size() - 2);
  return nlohmann::json::parse(text.substr(before == std::string::npos ? 0 : before + 1));
}

}  // namespace

TEST_CASE("bench_step prints the same fields as the peer scripts and trains the same network") {
  const TemporaryFolder folder;
  // Numbers counted by peer_torch.py.
  for (const auto& [gate, parameters] : {std::pair{"none", 7987}, {"layerscale", 8019}}) {
    const Finished f = run(folder.path(), bench_step + "--seed 1 --dropkey 0.1 --gate " + gate);
    INFO(f.err << f.out);
    REQUIRE(f.status == 0);
    const nlohmann::json result = last_json(f.out);
    for (const char* key :
         {"depth",        "dim",          "heads", "batch",      "image",      "patch",   "classes", "threads",
          "steps",        "warmup",       "seed",  "gate",       "dropkey",    "dtype",   "min_s",   "median_s",
          "images_per_s", "gflops_per_s", "loss",  "parameters", "peak_bytes", "machine", "commit",  "page_faults"})
      CHECK(result.contains(key));
    CHECK(result["gate"] == gate);
    CHECK(result["parameters"] == parameters);
    const double median = result["median_s"],
                 flops = 3 * 2 * (2 * (2 * 5 * 12 * 64 + 4 * 25 * 8) + 2 * 4 * 3 * 256 * 8 + 2 * 8 * 3);
    CHECK(result["min_s"].get<double>() <= median);
    CHECK(result["images_per_s"].get<double>() == Approx(2 / median));
    CHECK(result["gflops_per_s"].get<double>() == Approx(flops / median * 1e-9));
    const double loss = result["loss"];
    CHECK((0 < loss && loss < 3));
    CHECK(last_json(run(folder.path(), bench_step + "--seed 1 --dropkey 0.1 --threads 1 --gate " + gate).out)["loss"] ==
          loss);
    CHECK(last_json(run(folder.path(), bench_step + "--seed 2 --dropkey 0.1 --gate " + gate).out)["loss"] != loss);
  }
}

TEST_CASE("bench_detr prints the same fields as the peer script and trains the same network") {
  const TemporaryFolder folder;
  const std::string small = program("bench_detr") +
                            " --dim 8 --heads 2 --encoder 1 --decoder 2 --hidden 12 --queries 3 --image 16 --batch 2 "
                            "--classes 4 --objects 2 --steps 2 --warmup 1 ";
  const Finished f = run(folder.path(), small);
  INFO(f.err << f.out);
  REQUIRE(f.status == 0);
  const nlohmann::json result = last_json(f.out);
  for (const char* key :
       {"dim",          "heads",   "encoder",    "decoder",    "hidden",  "queries", "image", "classes",
        "batch",        "objects", "threads",    "steps",      "warmup",  "seed",    "min_s", "median_s",
        "images_per_s", "loss",    "peak_bytes", "parameters", "machine", "commit",  "build"})
    CHECK(result.contains(key));
  CHECK(result["parameters"] == 26925);  // counted by peer_detr.py
  CHECK((0 < result["loss"] && result["loss"] < 30));
  CHECK(last_json(run(folder.path(), small + "--threads 1").out)["loss"] == result["loss"]);
  CHECK(last_json(run(folder.path(), small + "--seed 2").out)["loss"] != result["loss"]);
  CHECK(run(folder.path(), program("bench_detr") + " --heads 3").status == 2);
}

TEST_CASE("bench_ops lists kernels and times the selected ones and writes a table") {
  const TemporaryFolder folder;
  const Finished list = run(folder.path(), program("bench_ops") + " --list");
  CHECK(list.status == 0);
  CHECK_THAT(list.out, contains("linear_forward norm, qkv\n") && contains("attention_backward, DropKey\n") &&
                           contains("adamw on a block's weights\n"));

  const Finished f = run(folder.path(), program("bench_ops") + " --models dim64 --filter 'slice of' --csv table.csv");
  INFO(f.err << f.out);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("dim64: batch 64, 17 tokens, 2 heads.") && contains("slice of a token") &&
                        contains(" GB/s") && !contains("linear"));
  const std::string table = slurp(folder.path() / "table.csv");
  CHECK(
      table.starts_with("model,kernel,bound,bytes,flops,cold_ns,cold_share,warm_ns,warm_share\ndim64,\"slice of a "
                        "token\",memory,32768,0,"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 2);

  const Finished wrong = run(folder.path(), program("bench_ops") + " --filter atention");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("--filter 'atention'") && contains("--list"));
}
