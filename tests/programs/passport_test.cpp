#include <nlohmann/json.hpp>

#include "nn/gates/method.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const std::string small_passport = program("passport") + " --dim 8 --patch 16 --batch 4 --probes 2 --no-progress ";

}  // namespace

TEST_CASE("passport program: every method at init gives no warning and the same bytes each time") {
  const TemporaryFolder folder;
  const int gates = static_cast<int>(nn::method_names().size());
  const Finished first = run(folder.path(), small_passport + "--gates all --depths 1,3 --out a");
  INFO(first.err << first.out);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.out, contains(fmt::format("\nAt init, {0} of {0} networks follow their growth law.\n", 2 * gates)) &&
                            contains("Signals at init\n") && contains("layernorm_scaling") &&
                            contains("  followed\n") && contains("report: a/report.html") && !contains("not follow") &&
                            !contains("last step"));
  const std::string csv = slurp(folder.path() / "a/layers.csv");
  CHECK(
      csv.starts_with("gate,depth,seed,step,block,branch,stream_norm,branch_norm,ratio,cosine,mean_square,"
                      "predicted_mean_square,gate_mean,"
                      "gate_min,gate_max,grad_norm,update,entropy,relative_entropy,largest_logit,change,drop_ratio,"
                      "empty_rows\npost,1,0,0,0,attn,"));
  CHECK(lines_of(csv) == 1 + gates * (2 * 1 + 2 * 3));
  CHECK(csv.find("nan") == std::string::npos);
  CHECK_THAT(slurp(folder.path() / "a/report.html"),
             contains("<svg") && contains("mean square of the stream") && !contains("not followed"));

  const Finished json = run(folder.path(), small_passport + "--gates all --depths 1,3 --out b --threads 1 --json");
  REQUIRE(json.status == 0);
  CHECK(slurp(folder.path() / "b/layers.csv") == csv);
  const auto results = nlohmann::json::parse(json.out)["results"];
  REQUIRE(static_cast<int>(results.size()) == 2 * gates);
  for (const auto& r : results) {
    CHECK(r["warnings"] == 0);
    CHECK((r["loss"].is_number() && r["grad_norm"].is_number() && r["jacobian"].is_number()));
    if (r["gate"] == "rezero") CHECK(r["jacobian"].get<double>() == Approx(1));
  }
}

TEST_CASE("passport program: it trains and measures the layers during training") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), small_passport + "--gates pre,layerscale --depths 2 --seeds 0..1 --steps 6 --every 2 --out a");
  INFO(f.err << f.out);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("Signals at init\n") && contains("Signals at the last step\n"));
  CHECK(lines_of(slurp(folder.path() / "a/layers.csv")) == 1 + 2 * 2 * 4 * 4);  // steps 0, 2, 4 and the last step, 5
  CHECK_THAT(slurp(folder.path() / "a/report.html"), contains("Signals while training") && contains("largest logit"));

  const Finished exploding =
      run(folder.path(), program("passport") +
                             " --dim 8 --patch 16 --batch 4 --no-jacobian --gates rezero --depths 2 --steps 40 "
                             "--lr 1e18 --json --out b");
  INFO(exploding.err);
  REQUIRE(exploding.status == 0);
  const auto results = nlohmann::json::parse(exploding.out)["results"];
  CHECK(results[0]["status"] == "diverged");
  CHECK_FALSE(results[0].contains("jacobian"));
  const Finished dry = run(folder.path(), small_passport + "--gates pre,post --depths 1,2 --seeds 0..2 --dry-run");
  CHECK_THAT(dry.out, contains("12 trials without training steps") && !contains("training: about"));
}
