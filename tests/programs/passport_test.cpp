#include <nlohmann/json.hpp>

#include "nn/gates/gate.h"
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
  CHECK_THAT(first.out, contains("layernorm_scaling") && contains("report: a/report.html"));
  CHECK(first.out.find('!') == std::string::npos);
  const std::string csv = slurp(folder.path() / "a/passport.csv");
  CHECK(
      csv.starts_with("gate,depth,seed,step,block,branch,norm,stream_norm,branch_norm,ratio,cosine,mean_square,"
                      "predicted_mean_square,gate_mean,"
                      "gate_min,gate_max,grad_norm,update,entropy,relative_entropy,largest_logit,change,drop_ratio,"
                      "empty_rows\npost,1,0,0,0,attn,post,"));
  CHECK(lines_of(csv) == 1 + gates * (2 * 1 + 2 * 3));
  CHECK(csv.find("nan") == std::string::npos);
  const std::string report = slurp(folder.path() / "a/report.html");
  CHECK_THAT(report, contains("<svg") && contains("follows the growth law of its method"));
  CHECK_THAT(report, contains("Each of the"));

  const Finished json = run(folder.path(), small_passport + "--gates all --depths 1,3 --out b --threads 1 --json");
  REQUIRE(json.status == 0);
  for (const char* file : {"metrics.jsonl", "passport.csv"})
    CHECK(slurp(folder.path() / "b" / file) == slurp(folder.path() / "a" / file));
  const auto results = nlohmann::json::parse(json.out)["results"];
  REQUIRE(static_cast<int>(results.size()) == 2 * gates);
  for (const auto& r : results) {
    CHECK(r["warnings"].empty());
    CHECK(r["jacobian"].is_number());
    CHECK(r["block_ratios"].size() == r["depth"].get<std::size_t>());
    if (r["gate"] == "rezero") CHECK(r["jacobian"].get<double>() == Approx(1));
  }
}

TEST_CASE("passport program: it trains and measures passports during training") {
  const TemporaryFolder folder;
  const Finished f =
      run(folder.path(), small_passport + "--gates pre,layerscale --depths 2 --seeds 0..1 --steps 6 --every 2 --out a");
  INFO(f.err << f.out);
  REQUIRE(f.status == 0);
  CHECK_THAT(f.out, contains("At init") && contains("At the last passport"));
  CHECK(lines_of(slurp(folder.path() / "a/metrics.jsonl")) == 2 * 2 * 6);
  CHECK(lines_of(slurp(folder.path() / "a/passport.csv")) == 1 + 2 * 2 * 4 * 4);  // steps 0, 2, 4 and the last step, 5
  CHECK_THAT(slurp(folder.path() / "a/report.html"),
             contains("Updates while training") && contains("Geometric means over seeds"));

  const Finished exploding =
      run(folder.path(), program("passport") +
                             " --dim 8 --patch 16 --batch 4 --no-jacobian --gates rezero --depths 2 --steps 40 "
                             "--lr 1e18 --json --out b");
  INFO(exploding.err);
  REQUIRE(exploding.status == 0);
  const auto results = nlohmann::json::parse(exploding.out)["results"];
  CHECK_THAT(results.back()["divergence"].get<std::string>(), contains("diverged at step"));
  CHECK_FALSE(results[0].contains("jacobian"));
}

TEST_CASE("passport program: a folder is refused or resumed or overwritten") {
  const TemporaryFolder folder;
  const std::string command = small_passport + "--gates pre,rezero --depths 1 --steps 2 --out a ";
  REQUIRE(run(folder.path(), command).status == 0);
  const std::string metrics = slurp(folder.path() / "a/metrics.jsonl"), csv = slurp(folder.path() / "a/passport.csv");
  const std::string report = slurp(folder.path() / "a/report.html");
  const Finished refused = run(folder.path(), command);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, contains("--resume"));
  CHECK(run(folder.path(), command + "--resume --steps 3").status == 2);

  // The second network is removed from the ledger. Only that network runs again.
  const std::string ledger = slurp(folder.path() / "a/ledger.jsonl");
  { std::ofstream(folder.path() / "a/ledger.jsonl") << ledger.substr(0, ledger.find('\n') + 1); }
  const Finished resumed = run(folder.path(), command + "--resume");
  CHECK(resumed.status == 0);
  CHECK(resumed.err.find("pre depth 1") == std::string::npos);
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == metrics);
  CHECK(slurp(folder.path() / "a/passport.csv") == csv);
  CHECK(slurp(folder.path() / "a/report.html").substr(0, report.find("Provenance")) ==
        report.substr(0, report.find("Provenance")));

  CHECK(run(folder.path(), command + "--overwrite").status == 0);
  CHECK(slurp(folder.path() / "a/metrics.jsonl") == metrics);
}

TEST_CASE("passport program: an error on the command line ends with status 2 and one line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& flags) {
    const Finished f = run(folder.path(), program("passport") + " " + flags);
    INFO(f.err);
    CHECK(f.status == 2);
    CHECK((f.err.starts_with("error: ") && lines_of(f.err) == 1 && f.out.empty()));
    return f.err;
  };
  CHECK_THAT(refused("--gates layer_scale"), contains("layerscale"));
  CHECK_THAT(refused("--evry 3"), contains("--every"));
  CHECK_THAT(refused("--every 0"), contains("--every"));
  CHECK_THAT(refused("--probes 1"), contains("--probes"));
  CHECK_THAT(refused("--steps -1"), contains("--steps"));
  CHECK_THAT(refused("--warmup 1"), contains("--steps 0"));
  CHECK_THAT(refused("--dim 63"), contains("--heads 2"));
  CHECK_THAT(refused("--patch 5"), contains("--patch 5"));
  const std::string dry =
      run(folder.path(), program("passport") + " --gates pre,post --depths 1,2 --seeds 0..2 --dry-run").out;
  CHECK(lines_of(dry.substr(0, dry.find("\n\n") + 1)) == 12);
  CHECK_THAT(dry, contains("12 trials without training steps") && !contains("training: about"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
}
