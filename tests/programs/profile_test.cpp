#include <nlohmann/json.hpp>
#include <set>

#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

namespace fs = std::filesystem;

std::set<int> steps_of(const fs::path& trace) {
  std::set<int> steps;
  const auto content = nlohmann::json::parse(slurp(trace));
  for (const auto& event : content.at("traceEvents")) steps.insert(event.at("args").at("step").get<int>());
  return steps;
}

}  // namespace

TEST_CASE("profile: the option times steps 3 to 7 of the first trial of every program and changes no result") {
  const TemporaryFolder folder;
  const auto [name, arguments, label, module] = GENERATE(table<std::string, std::string, std::string, std::string>({
      {"depth_stability", "--gates pre,rezero --depths 1 --dim 8", "pre depth 1 lr 0.003 seed 0",
       "ViT.blocks.*.attn.qkv"},
      {"passport", "--gates rezero --depths 1 --dim 8 --patch 16 --no-jacobian", "rezero depth 1 seed 0",
       "ViT.blocks.*.mlp.fc1"},
      {"deep_mlp", "--methods rezero,vanilla --depths 3 --width 8 --seeds 4,5", "rezero depth 3 seed 4",
       "DeepMlp.hidden.*"},
      {"vit", "--model cait --dim 8 --heads 2 --depth 2 --patch 16 --seeds 2..3", "seed 2",
       "CaiT.blocks_token_only.*.attn.q"},  // a study without axes
  }));
  CAPTURE(name);
  const std::string command = program(name) + " " + arguments + " --batch 4 --steps 10 --no-progress --json --out ";
  const Finished plain = run(folder.path(), command + "a"), profiled = run(folder.path(), command + "b --profile");
  INFO(profiled.err);
  REQUIRE(plain.status == 0);
  REQUIRE(profiled.status == 0);
  CHECK_FALSE(fs::exists(folder.path() / "a/profile.json"));

  const auto results = nlohmann::json::parse(profiled.out).at("results"),
             expected = nlohmann::json::parse(plain.out).at("results");
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    for (const auto& [key, value] : expected[i].items())
      if (key != "seconds" && key != "images_per_second") CHECK(results[i].at(key) == value);
  CHECK(nlohmann::json::parse(slurp(folder.path() / "b/run.json"))["settings"] ==
        nlohmann::json::parse(slurp(folder.path() / "a/run.json"))["settings"]);

  const std::string text = slurp(folder.path() / "b/profile.txt");
  CHECK(text.starts_with(label + "\n"));
  CHECK_THAT(text, contains("\nkernel ") && contains("\nmodule ") && contains(module) && contains("\nsteps 3 to 7: "));
  CHECK(profiled.err.ends_with(
      "\n" + text +
      "This table is in b/profile.txt. Open b/profile.json in https://ui.perfetto.dev or chrome://tracing\n"));
  CHECK(steps_of(folder.path() / "b/profile.json") == std::set<int>{3, 4, 5, 6, 7});
}

TEST_CASE("profile: the option times the steps of a short trial and skips a diverging one and refuses too few steps") {
  const TemporaryFolder folder;
  const std::string command =
      program("depth_stability") + " --gates rezero --depths 2 --dim 8 --batch 4 --no-progress --profile --out a ";
  REQUIRE(run(folder.path(), command + "--steps 5").status == 0);
  CHECK(steps_of(folder.path() / "a/profile.json") == std::set<int>{3, 4});

  const Finished diverging = run(folder.path(), command + "--overwrite --steps 40 --warmup 8 --lrs 1e18,120,1e-3");
  INFO(diverging.err);
  CHECK(diverging.status == 0);
  CHECK_THAT(diverging.err,
             // The trial diverges at step 5, which is one of the profiled steps.
             contains("lr 120 seed 0    diverged at step"));
  CHECK(slurp(folder.path() / "a/profile.txt").starts_with("rezero depth 2 lr 0.001 seed 0\n"));
  CHECK(steps_of(folder.path() / "a/profile.json") == std::set<int>{3, 4, 5, 6, 7});

  const Finished none = run(folder.path(), command + "--overwrite --steps 40 --lrs 1e18");
  CHECK(none.status == 0);
  CHECK_THAT(none.err, contains("no trial of this call took steps 3 to 7"));
  CHECK_FALSE(fs::exists(folder.path() / "a/profile.txt"));
  CHECK_FALSE(fs::exists(folder.path() / "a/profile.json"));

  const Finished refused = run(folder.path(), command + "--overwrite --steps 3");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             contains("--profile times the steps 3 to 7, counted from 0; give --steps of at least 4, got 3"));
}

TEST_CASE("a profile in the folder does not prevent --resume and --overwrite") {
  const TemporaryFolder folder;
  const std::string command =
      program("depth_stability") + " --gates pre,rezero --depths 1 --dim 8 --batch 4 --steps 4 --no-progress --out a ";
  REQUIRE(run(folder.path(), command + "--profile").status == 0);
  const std::string csv = slurp(folder.path() / "a/results.csv"), profile = slurp(folder.path() / "a/profile.json");

  // There is no step left to profile, so the earlier profile stays.
  const Finished complete = run(folder.path(), command + "--resume --profile");
  CHECK(complete.status == 0);
  CHECK_THAT(complete.err, contains("no trial of this call"));
  CHECK(slurp(folder.path() / "a/results.csv") == csv);
  CHECK(slurp(folder.path() / "a/profile.json") == profile);

  const std::string ledger = slurp(folder.path() / "a/ledger.jsonl");
  {
    std::ofstream(folder.path() / "a/ledger.jsonl") << ledger.substr(0, ledger.find('\n') + 1);
  }  // the second trial is removed
  CHECK(run(folder.path(), command + "--resume --profile").status == 0);
  CHECK(slurp(folder.path() / "a/profile.txt").starts_with("rezero depth 1 "));

  CHECK(run(folder.path(), command + "--overwrite").status == 0);
  CHECK_FALSE(fs::exists(folder.path() / "a/profile.txt"));
  CHECK_FALSE(fs::exists(folder.path() / "a/profile.json"));
}

TEST_CASE("a profile is written as soon as its steps are complete") {
  const TemporaryFolder folder;
  const Finished killed = run(
      folder.path(), program("depth_stability") +
                         " --gates pre --depths 1 --dim 8 --batch 4 --steps 4000 --profile --out a & pid=$!; "
                         "until [ -s a/profile.json ] || ! kill -0 $pid; do sleep 0.02; done; kill -9 $pid; wait $pid");
  INFO(killed.err);
  REQUIRE(killed.status == 137);
  CHECK(steps_of(folder.path() / "a/profile.json") == std::set<int>{3, 4, 5, 6, 7});
  CHECK_THAT(slurp(folder.path() / "a/profile.txt"), contains("\nsteps 3 to 7: "));
}
