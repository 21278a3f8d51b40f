// Tests of sweeps: resuming, parallel jobs, shards, searches, and trials of other code.
#include "experiments/vision/study.h"

#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("a resumed study may have further values and seeds and runs only missing trials") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  REQUIRE(call(folder.path(), main, with(tiny, {"--depths", "1", "--epsilons", "0.1"})).status == 0);
  CHECK(study.bodies == 1);
  const Ended more =
      call(folder.path(), main, with(tiny, {"--depths", "1,2", "--epsilons", "0,0.1", "--seeds", "0..1", "--resume"}));
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(study.bodies == 8);
  CHECK(nlohmann::json::parse(file(folder, "a/run.json"))["settings"]["depths"] == std::vector<int>{1, 2});
  // The files equal the files of a single call.
  Words whole = with(tiny, {"--depths", "1,2", "--epsilons", "0,0.1", "--seeds", "0..1", "--overwrite"});
  whole[8] = "b";
  REQUIRE(call(folder.path(), main, whole).status == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "b/results.csv")));
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "b/metrics.jsonl"));
  // A call with fewer values keeps the other trials in the ledger, and tells their number.
  const Ended fewer =
      call(folder.path(), main, with(tiny, {"--depths", "2", "--epsilons", "0.1", "--seeds", "0", "--resume"}));
  CHECK(study.bodies == 16);
  CHECK_THAT(fewer.err, contains("7 trials of a/ledger.jsonl outside the axes of this call"));
  CHECK(lines_of(file(folder, "a/results.csv")) == 2);
  CHECK(lines_of(file(folder, "a/ledger.jsonl")) == 8);
  // A call with other settings is refused with an error.
  const Ended other = call(folder.path(), main, with(tiny, {"--weight-decay", "0.1", "--resume"}));
  CHECK(other.status == 2);
  CHECK_THAT(other.err, contains("weight_decay is 0.05 there and 0.1 here"));
}

TEST_CASE("resume, rebuild and dry run take the settings of the folder") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words first = with(tiny, {"--depths", "1,2", "--epsilons", "0,0.1", "--seeds", "0..1"});
  REQUIRE(call(folder.path(), main, first).status == 0);
  const std::string settings = nlohmann::json::parse(file(folder, "a/run.json"))["settings"].dump();
  const Ended planned = call(folder.path(), main, {"--resume", "--out", "a", "--dry-run"});
  CHECK_THAT(planned.out, contains("0 trials to run; --resume skips 8 finished trials"));
  for (const char* option : {"--resume", "--rebuild"}) {
    const Ended again = call(folder.path(), main, {option, "--out", "a", "--no-progress"});
    INFO(again.err);
    CHECK(again.status == 0);
    CHECK(study.bodies == 8);
    CHECK(nlohmann::json::parse(file(folder, "a/run.json"))["settings"].dump() == settings);
  }
  // Typed options replace those of the folder.
  const Ended more = call(folder.path(), main, {"--resume", "--out", "a", "--seeds", "0..2", "--no-progress"});
  CHECK(more.status == 0);
  CHECK(study.bodies == 12);
  const Ended rest = call(folder.path(), main, {"--resume", "--out", "a", "--seeds", "0..3", "--dry-run"});
  CHECK_THAT(rest.out, contains("4 trials") && contains("--resume skips 12 finished trials"));
  const Ended other = call(folder.path(), main, {"--resume", "--out", "a", "--weight-decay", "0.1"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, contains("weight_decay is 0.05 there and 0.1 here; leave the options out"));
  // A folder without a study begins one.
  Words begin = with(tiny, {"--depths", "1", "--resume"});
  *(std::ranges::find(begin, "--out") + 1) = "b";
  const Ended begun = call(folder.path(), main, begin);
  CHECK_THAT(begun.err, contains("b has no study yet; --resume starts a new one"));
}

TEST_CASE("a claim that was added later is post hoc, and trials without a rule of judging get no verdicts") {
  const TemporaryFolder folder;
  bool adds_claim = false;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("later", "Later.", {.network = false, .optimization = false});
    study.axis<std::string>("--methods", {"a", "b"}, "Methods");
    study.claim("planned", "a test", lower("size", {{"method", "a"}}, {{"method", "b"}}));
    if (adds_claim) study.claim("added", "a test", higher("size", {{"method", "a"}}, {{"method", "b"}}));
    return study.run(argc, argv, [&](lab::Trial& trial) {
      trial.measure({{"size", trial.point().get<std::string>("method") == "a" ? 1 : 2 + 0.1 * trial.seed()}});
    });
  };
  const Words words{"--no-progress", "--out", "a", "--seeds"};
  REQUIRE(call(folder.path(), main, with(words, {"0..2"})).status == 0);
  adds_claim = true;
  REQUIRE(call(folder.path(), main, with(words, {"0..5", "--resume"})).status == 0);
  auto run = StudyDescription::parse(file(folder, "a/run.json"), "a");
  CHECK(run.claims == std::vector<std::string>{"planned"});
  std::string claims = file(folder, "a/claims.csv");
  CHECK_THAT(claims, contains("\nplanned,a test,agree,6,0,6,") && contains(",agree,no,") &&
                         contains("\nadded,a test,disagree,0,6,6,") && contains(",disagree,yes,"));
  run.rule.clear();
  write_file_atomically(folder / "a/run.json", run.text());
  const Ended old = call(folder.path(), main, with(words, {"0..5", "--rebuild"}));
  CHECK_THAT(old.out, contains("old trials: 6:0") && contains("; old trials: judged by another rule"));
  CHECK_THAT(file(folder, "a/claims.csv"), contains("\nplanned,a test,undecided,6,0,6,"));
}

TEST_CASE("parallel jobs, shards and other numbers of threads give the same bytes except for times", "[long]") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const auto run = [&](const std::string& out, const Words& more) {
    Words words = with(tiny, with({"--seeds", "0..2"}, more));
    words[8] = out;
    const Ended e = call(folder.path(), main, words);
    INFO(e.err);
    REQUIRE(e.status == 0);
    return std::pair(timeless(file(folder, out + "/results.csv")), file(folder, out + "/metrics.jsonl"));
  };
  const auto alone = run("alone", {"--threads", "1"});
  int number = 0;
  for (const Words& more : {Words{"--jobs", "2"}, Words{"--jobs", "5", "--threads", "3"}, Words{"--threads", "2"}})
    CHECK(run("b" + std::to_string(number++), more) == alone);
  std::multiset<std::string> rows;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    std::istringstream lines(run(std::string("shard") + shard[0], {"--shard", shard}).first);
    std::string row;
    std::getline(lines, row);
    while (std::getline(lines, row)) rows.insert(row);
  }
  std::istringstream lines(alone.first);
  std::string row;
  std::getline(lines, row);
  int count = 0;
  for (; std::getline(lines, row); ++count) CHECK(rows.count(row) == 1);
  CHECK(rows.size() == static_cast<std::size_t>(count));
}

TEST_CASE("every number format gives the same bits in parallel jobs") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const std::string dtype = GENERATE("bf16", "fp64");
  const auto run = [&](const std::string& out, const Words& more) {
    const Ended e = call(
        folder.path(), main,
        with({"--dim", "8", "--batch", "4", "--steps", "4", "--no-progress", "--dtype", dtype, "--out", out}, more));
    INFO(e.err);
    REQUIRE(e.status == 0);
    return std::pair(timeless(file(folder, out + "/results.csv")), file(folder, out + "/metrics.jsonl"));
  };
  CHECK(run("side", {"--jobs", "2", "--threads", "2"}) == run("alone", {"--threads", "1"}));
}

TEST_CASE("an interrupt stops all parallel jobs and --resume completes the same files") {
  const TemporaryFolder folder;
  std::atomic<int> steps = 0;
  int stop_at = -1;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("side", "Side by side.");
    study.axis<int>("--depths", {1, 2, 3, 4}, "Depths");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial));
      trial.train(model, {.before = [&](std::int64_t) {
                    if (++steps == stop_at) interrupted_by(SIGINT);
                  }});
    });
  };
  const Words words{"--dim", "8", "--batch", "4", "--steps", "20", "--jobs", "2", "--no-progress", "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"whole"})).status == 0);
  steps = 0, stop_at = 25;
  const Ended stopped = call(folder.path(), main, with(words, {"a"}));
  CHECK(stopped.status == 130);
  CHECK_THAT(stopped.err, contains(" of 4 trials are finished") && contains("--resume --out a"));
  CHECK(lines_of(file(folder, "a/results.csv")) < 5);
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(words, {"a", "--resume"})).status == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "whole/metrics.jsonl"));
  // If both jobs stopped between two trials, there was no checkpoint.
  const std::filesystem::path checkpoints = folder / "a/checkpoints";
  CHECK((!std::filesystem::exists(checkpoints) || std::filesystem::is_empty(checkpoints)));
}

TEST_CASE("weights that could not be written end the call with status 1, and --resume writes them") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0, steps = 0;
  bool blocked = false, full = false;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("saving", "Saving.");
    study.axis<int>("--depths", {1}, "Depths");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      ++bodies;
      nn::ViT model(vision::vit(trial));
      // A folder at the place of the file.
      if (blocked && trial.seed() == 0) fs::create_directories(trial.weights_file());
      std::optional<FileSizeLimit> limit;
      if (full) limit.emplace(20'000);  // weights and checkpoints are larger
      trial.train(model, {.before = [&](std::int64_t) { ++steps; }});
    });
  };
  const auto run = [&](const std::string& out, const Words& more) {
    bodies = steps = 0;
    return call(folder.path(), main,
                with({"--dim", "32", "--batch", "4", "--steps", "4", "--seeds", "0..1", "--no-progress", "--ema-decay",
                      "0.5", "--checkpoint-every", "0", "--out", out},
                     more));
  };
  const fs::path weights = "weights/depth-1-seed-0.safetensors";
  REQUIRE(run("whole", {"--save-weights"}).status == 0);
  CHECK_THAT(file(folder, "whole/ledger.jsonl"), contains("\"weights_saved\":true"));
  const auto check_whole = [&](const Ended& e, int with_bodies, int with_steps) {
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK(bodies == with_bodies);
    CHECK(steps == with_steps);
    CHECK(file(folder, "a/" + weights.string()) == file(folder, "whole/" + weights.string()));
    CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
    CHECK(file(folder, "a/metrics.jsonl") == file(folder, "whole/metrics.jsonl"));
    CHECK(lines_of(file(folder, "a/ledger.jsonl")) >= 2);
    CHECK((!fs::exists(folder / "a/checkpoints") || fs::is_empty(folder / "a/checkpoints")));
  };
  const auto lose = [&] {
    blocked = true;
    const Ended e = run("a", {"--save-weights", "--jobs", "2", "--overwrite"});
    CHECK(e.status == 1);
    CHECK_THAT(e.err, contains("no weights saved for depth 1 seed 0: cannot write") && contains("Is a directory") &&
                          contains("error: the weights of 1 of 2 trials were not saved; --resume --save-weights "
                                   "writes them"));
    CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
    CHECK_THAT(file(folder, "a/ledger.jsonl"),
               contains("\"weights_saved\":false") && contains("\"weights_saved\":true"));
    CHECK_FALSE(checkpoint_in(folder / "a").empty());
    blocked = false;
    fs::remove(folder / ("a" / weights));
  };
  const std::string again = "were not saved and depth 1 seed 0 has no checkpoint, so it trains again";
  SECTION("from the checkpoint, without training") {
    lose();
    CHECK(run("a", {"--resume"}).status == 0);  // weights are not asked for
    CHECK(bodies == 0);
    blocked = true;
    const Ended still = run("a", {"--resume", "--save-weights"});
    CHECK(still.status == 1);
    CHECK(steps == 0);
    CHECK_FALSE(checkpoint_in(folder / "a").empty());
    blocked = false;
    fs::remove(folder / ("a" / weights));
    const Ended e = run("a", {"--resume", "--save-weights"});
    CHECK_THAT(e.err, contains("depth 1 seed 0") && contains("weights saved") && !contains(again));
    check_whole(e, 1, 0);
    // Files that the user deleted are not made again.
    fs::remove(folder / ("a" / weights));
    CHECK(run("a", {"--resume", "--save-weights"}).status == 0);
    CHECK(bodies == 0);
    CHECK_FALSE(fs::exists(folder / ("a" / weights)));
  }
  SECTION("from the checkpoint of a call that was killed before the trial was in the ledger") {
    lose();
    fs::remove(folder / "a/ledger.jsonl");
    check_whole(run("a", {"--resume", "--save-weights"}), 2, 4);
  }
  SECTION("by training again, without the checkpoint") {
    lose();
    fs::remove(checkpoint_in(folder / "a"));
    const Ended e = run("a", {"--resume", "--save-weights"});
    CHECK_THAT(e.err, contains(again));
    check_whole(e, 1, 4);
  }
  SECTION("by training again, because the checkpoint could not be written either") {
    full = true;
    const Ended lost = run("a", {"--save-weights"});
    full = false;
    CHECK(lost.status == 1);
    CHECK_THAT(lost.err, contains("no weights saved for depth 1 seed 1") &&
                             contains("no checkpoint saved for depth 1 seed 1") && contains("File too large") &&
                             contains("error: the weights of 2 of 2 trials were not saved"));
    CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
    const Ended e = run("a", {"--resume", "--save-weights"});
    CHECK_THAT(e.err, contains(again));
    check_whole(e, 2, 8);
  }
}

TEST_CASE("a search names its next trials from earlier results and takes the same path again") {
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0;
  // The search finds the largest depth of 1..16 whose trials end well. For one kind the trials end well up to depth 5,
  // for the other kind up to depth 11.
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("limit", "How deep?", {.network = false, .optimization = false});
    const auto kind = study.axis<std::string>("--kinds", {"low", "high"}, "Kinds");
    const auto depth = study.searched<int>("depth");
    study.search([](const Search& search) -> std::vector<Point> {
      int good = 0, bad = 17;
      std::map<int, std::vector<bool>> ended;
      for (const Record* r : search.so_far) ended[r->point.get<int>("depth")].push_back(r->status == Status::ok);
      for (const auto& [at, seeds] : ended) {
        const bool well = std::ranges::count(seeds, true) * 2 > std::ssize(seeds);
        well ? good = std::max(good, at) : bad = std::min(bad, at);
      }
      if (bad - good <= 1) return {};
      return {{{"depth", (good + bad) / 2}}};
    });
    return study.run(argc, argv, [&](lab::Trial& trial) {
      ++bodies;
      const int limit = trial[kind] == "low" ? 5 : 11;
      trial.measure({{"loss", trial[depth]}});
      if (trial[depth] > limit) trial.mark_diverged(0, "too deep");
    });
  };
  const Words words{"--steps", "1", "--no-progress", "--seeds", "0..2", "--out"};
  const Ended whole = call(folder.path(), main, with(words, {"a"}));
  INFO(whole.err << whole.out);
  REQUIRE(whole.status == 0);
  const std::string csv = timeless(file(folder, "a/results.csv"));
  CHECK(csv.starts_with("kind,depth,seed,status,steps,loss,diverged_at,\nlow,8,0,diverged,0,8,0,\n"));
  CHECK_THAT(csv, contains("\nlow,5,0,ok,") && contains("\nlow,6,2,diverged,") && contains("\nhigh,11,0,ok,") &&
                      contains("\nhigh,12,1,diverged,"));
  const int all = bodies;
  REQUIRE(call(folder.path(), main, with(words, {"j", "--jobs", "3"})).status == 0);
  CHECK(timeless(file(folder, "j/results.csv")) == csv);
  // A study that resumes from a part of the ledger does not repeat the trials in it.
  std::istringstream ledger(file(folder, "a/ledger.jsonl"));
  std::string part, line;
  for (int i = 0; i < 7 && std::getline(ledger, line); ++i) part += line + "\n";
  std::filesystem::create_directory(folder / "r");
  std::filesystem::copy(folder / "a/run.json", folder / "r/run.json");
  { std::ofstream(folder / "r/ledger.jsonl") << part; }
  bodies = 0;
  REQUIRE(call(folder.path(), main, with(words, {"r", "--resume"})).status == 0);
  CHECK(bodies == all - 7);
  CHECK(timeless(file(folder, "r/results.csv")) == csv);
  // A shard has all trials of a search.
  REQUIRE(call(folder.path(), main, with(words, {"s", "--shard", "2/2"})).status == 0);
  const std::string shard = file(folder, "s/results.csv");
  CHECK(shard.find("\nlow,") == shard.npos);
  CHECK_THAT(shard, contains("\nhigh,11,2,ok,"));
}

TEST_CASE("a failed trial stops only its own search until it is tried again") {
  const TemporaryFolder folder;
  bool fails = true;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("failing", "Failing.", {.network = false, .optimization = false});
    const auto kind = study.axis<std::string>("--kinds", {"a", "b"}, "Kinds");
    const auto depth = study.searched<int>("depth");
    study.search([](const Search& s) {
      return s.round < 3 ? std::vector<Point>{{{"depth", s.round + 1}}} : std::vector<Point>();
    });
    return study.run(argc, argv, [&](lab::Trial& trial) {
      if (fails && trial[kind] == "a" && trial[depth] == 2) throw Error("no");
      trial.measure({{"x", 1}});
    });
  };
  const Words words{"--steps", "1", "--no-progress", "--out", "a"};
  for (const Words& jobs : {Words{"--jobs", "1", "--overwrite"}, Words{"--jobs", "3", "--overwrite"}}) {
    const Ended e = call(folder.path(), main, with(words, jobs));
    CHECK(e.status == 1);
    CHECK_THAT(e.err, contains("error: 1 of 5 trials failed"));
  }
  REQUIRE(call(folder.path(), main, with(words, {"--rebuild"})).status == 0);
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 5);
  fails = false;
  REQUIRE(call(folder.path(), main, with(words, {"--resume"})).status == 0);
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 6);
}

TEST_CASE("a search that repeats a point or names a wrong one is an error") {
  const TemporaryFolder folder;
  const auto with_next = [&](const NextPoints& next) {
    return call(folder.path(),
                [&](int argc, const char* const* argv) {
                  vision::Study study("wrong", "Wrong.", {.network = false, .optimization = false});
                  study.searched<int>("depth");
                  study.search(next);
                  return study.run(argc, argv, [](lab::Trial&) {});
                },
                {"--steps", "1", "--no-progress"})
        .err;
  };
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"depth", 1}}};
             }),
             contains("[search] expected new points, got depth 1 seed 0 again"));
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"width", 1}}};
             }),
             contains("[search] expected points with a value of depth, got width 1"));
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"depth", 1}, {"width", 1}}};
             }),
             contains("[search] expected values of searched axes only"));
}

TEST_CASE("trials of other code are kept but not used unless accepted, and damaged lines are repeated") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  REQUIRE(call(folder.path(), main, tiny).status == 0);
  CHECK(study.bodies == 4);
  const auto path = folder / "a/ledger.jsonl";
  std::vector<LedgerEntry> entries = Ledger(path).entries();
  const std::string here = entries[0].code;
  std::filesystem::remove(path);
  for (LedgerEntry& e : entries) {
    if (&e != &entries[0]) e.code = "beef";
    Ledger(path).append(e);
  }
  Ledger(path).append(entries[1]);  // a second line of one trial, as after its weights were saved later
  const Words resume = with(tiny, {"--resume"});
  const Ended accepted = call(folder.path(), main, with(resume, {"--accept-code", "beef"}));
  CHECK(accepted.status == 0);
  CHECK(study.bodies == 4);
  CHECK(lines_of(file(folder, "a/results.csv")) == 5);
  CHECK_THAT(file(folder, "a/report.html"), contains("computed by other code: beef"));
  const Ended unknown = call(folder.path(), main, with(resume, {"--accept-code", "cafe"}));
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, contains("--accept-code cafe: a/ledger.jsonl ") && contains(here + ", beef"));

  Words other = tiny;
  other[8] = "b";
  std::filesystem::create_directory(folder / "b");
  std::filesystem::copy(path, folder / "b/ledger.jsonl");
  nlohmann::ordered_json run = nlohmann::ordered_json::parse(file(folder, "a/run.json"));
  run.erase("accepted_code");
  { std::ofstream(folder / "b/run.json") << run.dump(); }
  { std::ofstream(folder / "b/ledger.jsonl", std::ios::app) << "{\"key\":\"half"; }
  const Ended anew = call(folder.path(), main, with(other, {"--resume"}));
  INFO(anew.err);
  CHECK(anew.status == 0);
  CHECK(study.bodies == 7);
  CHECK_THAT(anew.err, contains("3 trials of b/ledger.jsonl computed by other code, beef (this is " + here + ")") &&
                           contains("--accept-code beef"));
  CHECK_THAT(anew.err, contains("damaged: b/ledger.jsonl, line 6: ") && contains("its trial is repeated"));
  CHECK(Ledger(folder / "b/ledger.jsonl").entries().size() == 8);
  CHECK_THAT(file(folder, "b/ledger.jsonl"), contains("{\"key\":\"half\n"));
  // Trials from before an option was added have other keys, so these trials can be displayed but not resumed.
  other[8] = "younger";
  std::filesystem::create_directory(folder / "younger");
  for (LedgerEntry& e : entries) {
    e.code = "beef", e.key = "0" + e.key;
    Ledger(folder / "younger/ledger.jsonl").append(e);
  }
  { std::ofstream(folder / "younger/run.json") << run.dump(); }
  const Ended refused = call(folder.path(), main, with(other, {"--resume", "--accept-code", "beef"}));
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, contains("--accept-code beef") && contains("younger/ledger.jsonl") && contains("--rebuild"));
  CHECK(study.bodies == 7);
  CHECK(file(folder, "younger/run.json") == run.dump());
  CHECK(call(folder.path(), main, with(other, {"--rebuild", "--accept-code", "beef"})).status == 0);
  CHECK(lines_of(file(folder, "younger/results.csv")) == 5);
}
