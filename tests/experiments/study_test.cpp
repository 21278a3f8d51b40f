// Studies of tests' own: axes, ledger, resume, side by side, searches, checkpoints, evaluation, hopeless and failing arms, replay.
#include "experiments/common/study.h"

#include <signal.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "autograd/autograd.h"
#include "experiments/common/arm_checkpoint.h"
#include "experiments/common/experiment.h"
#include "experiments/common/ledger.h"
#include "nn/gates/methods.h"
#include "nn/io/safetensors.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

const Words tiny{"--dim", "8", "--batch", "4", "--steps", "4", "--no-progress", "--out", "a"};

std::string file(const TemporaryFolder& folder, const std::string& name) { return read_file(folder / name); }

// The one checkpoint in a run's folder; empty if there is none.
std::filesystem::path checkpoint_in(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> found;
  if (std::filesystem::exists(run / "checkpoints"))
    for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) found.push_back(entry.path());
  CHECK(found.size() <= 1);
  return found.empty() ? std::filesystem::path() : found.front();
}

int lines_of(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// A CSV without its columns of times.
std::string timeless(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line, text;
  std::vector<bool> keep;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t c = 0; std::getline(cells, cell, ','); ++c) {
      if (keep.size() <= c) keep.push_back(cell != "seconds" && cell != "images_per_second");
      if (keep[c]) text += cell + ",";
    }
    text += '\n';
  }
  return text;
}

// The sketch of study.h, and how many bodies ran.
struct EpsilonStudy {
  std::atomic<int> bodies = 0;
  std::function<void(Arm&)> more = {};  // in the body, before the training

  int operator()(int argc, const char* const* argv) {
    Study study("layerscale_init", "Does the initial value of LayerScale matter?");
    const auto depth = study.axis<int>("--depths", {1, 2}, "Numbers of blocks").at_least(1).slowest();
    const auto epsilon = study.axis<double>("--epsilons", {0, 0.1}, "Initial value").at_least(0);
    study.claim("eps > 0 trains better than 0", "CaiT, table 1", lower("train_loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 2}}));
    return study.run(argc, argv, [&](Arm& arm) {
      ++bodies;
      nn::ViT model(arm.vit({.depth = arm[depth], .gate = nn::methods::layerscale(arm[epsilon])}));
      if (more) more(arm);
      arm.train(model);
    });
  }
};

}  // namespace

TEST_CASE("a study of one file: axes, files, table, claims, and the order of --dry-run") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Ended e = call(folder.path(), main, with(tiny, {"--seeds", "0..1"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK(study.bodies == 8);
  const std::string csv = file(folder, "a/results.csv");
  CHECK(csv.starts_with("depth,epsilon,seed,status,steps,seconds,train_loss,val_loss,val_accuracy,images_per_second\n1,0,0,ok,4,"));
  CHECK(lines_of(csv) == 9);
  CHECK(lines_of(file(folder, "a/ledger.jsonl")) == 8);
  CHECK(lines_of(file(folder, "a/metrics.jsonl")) == 8 * 4);
  CHECK(file(folder, "a/metrics.jsonl").starts_with("{\"depth\":1,\"epsilon\":0.0,\"seed\":0,\"step\":0,\"loss\":"));
  CHECK_THAT(e.out,
             contains("depth  epsilon") && contains("±") && contains("eps > 0 trains better than 0 (CaiT, table 1)\n  ") && contains("over 2 pairs"));
  CHECK_THAT(file(folder, "a/report.html"), contains("Does the initial value of LayerScale matter?") && contains("eps &gt; 0 trains better") &&
                                                contains("<svg") && contains("<th>epsilon</th>"));
  CHECK_THAT(file(folder, "a/results.md"), contains("| depth | epsilon |") && contains("- eps > 0 trains better"));

  const Ended dry = call(folder.path(), main, {"--dim", "8", "--batch", "4", "--steps", "4", "--seeds", "0..1", "--dry-run"});
  INFO(dry.err);
  REQUIRE(dry.status == 0);
  std::istringstream rows(csv), labels(dry.out);
  std::string row, label;
  std::getline(rows, row);
  while (std::getline(rows, row)) {
    std::getline(labels, label);
    std::istringstream cells(row);
    std::string depth, epsilon, seed;
    std::getline(cells, depth, ','), std::getline(cells, epsilon, ','), std::getline(cells, seed, ',');
    CHECK(label == "depth " + depth + " epsilon " + epsilon + " seed " + seed);
  }
  CHECK_THAT(dry.out, contains("8 runs of 4 steps of 4 images: 32 steps, 128 images") && contains("parameters of a network: ") &&
                          contains("training: about "));
  CHECK_THAT(call(folder.path(), main, {"--help"}).out,
             contains("--depths N,..") && contains("--epsilons N,..") && contains("--lr N") && !contains("--gate "));
}

TEST_CASE("an axis may be any option of the library, which makes room for it") {
  const TemporaryFolder folder;
  std::mutex mutex;
  std::set<std::tuple<std::int64_t, double, std::int64_t, std::string>> seen;
  const auto main = [&](int argc, const char* const* argv) {
    Study study("axes", "Axes.");
    study.axis<int>("--dims", {8, 16}, "Widths");
    study.axis<double>("--lrs", {1e-3}, "Rates");
    study.axis<int>("--warmups", {0, 2}, "Warm-ups");
    study.axis<std::string>("--optimizers", {"sgd", "adamw"}, "Optimizers");
    study.axis<double>("--drop-keys", {0.25}, "Rates of DropKey");
    return study.run(argc, argv, [&](Arm& arm) {
      const std::lock_guard lock(mutex);
      const nn::ViTOptions o = arm.vit({.depth = 1});
      CHECK(o.drop_key.rate == 0.25);
      seen.emplace(o.dim, arm.point().get<double>("lr"), arm.options().warmup, arm.point().get<std::string>("optimizer"));
      nn::ViT model(o);
      arm.train(model);
    });
  };
  const Ended e = call(folder.path(), main, {"--batch", "4", "--steps", "4", "--no-progress", "--out", "a"});
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK(seen.size() == 8);
  CHECK(file(folder, "a/results.csv").starts_with("dim,lr,warmup,optimizer,drop_key,seed,status,"));
  const Ended refused = call(folder.path(), main, {"--dim", "8"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, contains("did you mean --dims?"));
  // Of several rates the losses differ: the axis is what trained.
  std::set<std::string> losses;
  std::istringstream rows(timeless(file(folder, "a/results.csv")));
  for (std::string row; std::getline(rows, row);)
    if (row.find(",ok,") != row.npos) losses.insert(row.substr(row.find(",ok,")));
  CHECK(losses.size() == 8);
}

TEST_CASE("a resumed study may have further values of axes and seeds, and only what is missing runs") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  REQUIRE(call(folder.path(), main, with(tiny, {"--depths", "1", "--epsilons", "0.1"})).status == 0);
  CHECK(study.bodies == 1);
  const Ended more = call(folder.path(), main, with(tiny, {"--depths", "1,2", "--epsilons", "0,0.1", "--seeds", "0..1", "--resume"}));
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(study.bodies == 8);
  CHECK(nlohmann::json::parse(file(folder, "a/run.json"))["settings"]["depths"] == std::vector<int>{1, 2});
  // The same as in one go.
  Words whole = with(tiny, {"--depths", "1,2", "--epsilons", "0,0.1", "--seeds", "0..1", "--overwrite"});
  whole[8] = "b";
  REQUIRE(call(folder.path(), main, whole).status == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "b/results.csv")));
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "b/metrics.jsonl"));
  // Fewer: nothing is lost, and it is said.
  const Ended fewer = call(folder.path(), main, with(tiny, {"--depths", "2", "--epsilons", "0.1", "--resume"}));
  CHECK(study.bodies == 16);
  CHECK_THAT(fewer.err, contains("7 runs of a/ledger.jsonl outside the axes of this call: kept there, not in the tables\n"));
  CHECK(lines_of(file(folder, "a/results.csv")) == 2);
  CHECK(lines_of(file(folder, "a/ledger.jsonl")) == 8);
  // Other settings do not go into this folder.
  const Ended other = call(folder.path(), main, with(tiny, {"--weight-decay", "0.1", "--resume"}));
  CHECK(other.status == 2);
  CHECK_THAT(other.err, contains("weight_decay is 0.05 there and 0.1 here"));
}

TEST_CASE("side by side, in shards, on other threads: the same bytes but for times") {
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

TEST_CASE("a study that searches names its next arms from those that it has, the same way again") {
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0;
  // The largest depth of 1..16 whose arms end "well": those up to a limit that is 5 for one kind and 11 for the other.
  const auto main = [&](int argc, const char* const* argv) {
    Study study("limit", "How deep?", {.network = false, .optimization = false});
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
    return study.run(argc, argv, [&](Arm& arm) {
      ++bodies;
      const int limit = arm[kind] == "low" ? 5 : 11;
      arm.measure({{"loss", arm[depth]}});
      if (arm[depth] > limit) arm.diverged(0, "too deep");
    });
  };
  const Words words{"--steps", "1", "--no-progress", "--seeds", "0..2", "--out"};
  const Ended whole = call(folder.path(), main, with(words, {"a"}));
  INFO(whole.err << whole.out);
  REQUIRE(whole.status == 0);
  const std::string csv = timeless(file(folder, "a/results.csv"));
  CHECK(csv.starts_with("kind,depth,seed,status,steps,loss,diverged_at,\nlow,8,0,diverged,0,8,0,\n"));
  CHECK_THAT(csv, contains("\nlow,5,0,ok,") && contains("\nlow,6,2,diverged,") && contains("\nhigh,11,0,ok,") && contains("\nhigh,12,1,diverged,"));
  const int all = bodies;
  REQUIRE(call(folder.path(), main, with(words, {"j", "--jobs", "3"})).status == 0);
  CHECK(timeless(file(folder, "j/results.csv")) == csv);
  // Resumed from part of its ledger: what is there is not repeated.
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
  // Shards hold whole searches.
  REQUIRE(call(folder.path(), main, with(words, {"s", "--shard", "2/2"})).status == 0);
  const std::string shard = file(folder, "s/results.csv");
  CHECK(shard.find("\nlow,") == shard.npos);
  CHECK_THAT(shard, contains("\nhigh,11,2,ok,"));
}

TEST_CASE("an arm that fails ends its search, and no other, until it is tried again") {
  const TemporaryFolder folder;
  bool fails = true;
  const auto main = [&](int argc, const char* const* argv) {
    Study study("failing", "Failing.", {.network = false, .optimization = false});
    const auto kind = study.axis<std::string>("--kinds", {"a", "b"}, "Kinds");
    const auto depth = study.searched<int>("depth");
    study.search([](const Search& s) { return s.round < 3 ? std::vector<Point>{{{"depth", s.round + 1}}} : std::vector<Point>(); });
    return study.run(argc, argv, [&](Arm& arm) {
      if (fails && arm[kind] == "a" && arm[depth] == 2) throw Error("no");
      arm.measure({{"x", 1}});
    });
  };
  const Words words{"--steps", "1", "--no-progress", "--out", "a"};
  for (const Words& jobs : {Words{"--jobs", "1", "--overwrite"}, Words{"--jobs", "3", "--overwrite"}}) {
    const Ended e = call(folder.path(), main, with(words, jobs));
    CHECK(e.status == 1);
    CHECK_THAT(e.err, contains("error: 1 of 5 runs failed"));
  }
  REQUIRE(call(folder.path(), main, with(words, {"--rebuild"})).status == 0);
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 5);
  fails = false;
  REQUIRE(call(folder.path(), main, with(words, {"--resume"})).status == 0);
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 6);
}

TEST_CASE("a search that names what it has, or what is no place, is an error") {
  const TemporaryFolder folder;
  const auto with_next = [&](const NextPoints& next) {
    return call(folder.path(),
                [&](int argc, const char* const* argv) {
                  Study study("wrong", "Wrong.", {.network = false, .optimization = false});
                  study.searched<int>("depth");
                  study.search(next);
                  return study.run(argc, argv, [](Arm&) {});
                },
                {"--steps", "1", "--no-progress"})
        .err;
  };
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"depth", 1}}};
             }),
             contains("[search] expected points that are new, got depth 1 seed 0 again"));
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"width", 1}}};
             }),
             contains("[search] expected points with a value of depth, got width 1"));
  CHECK_THAT(with_next([](const Search&) {
               return std::vector<Point>{{{"depth", 1}, {"width", 1}}};
             }),
             contains("[search] expected values of searched axes alone"));
}

TEST_CASE("an arm that is interrupted goes on from its checkpoint to the same bits") {
  const TemporaryFolder folder;
  const std::string optimizers = GENERATE("adamw", "sgd", "lamb", "adagrad");
  int stop_at = -1;
  int first_step = -1;
  const auto main = [&](int argc, const char* const* argv) {
    Study study("kept", "Kept.");
    study.axis<std::string>("--gates", {"admin_profile"}, "Gates");  // sets initial values from the first batch
    return study.run(argc, argv, [&](Arm& arm) {
      nn::ViT model(arm.vit({.depth = 2}));
      first_step = -1;
      arm.train(model, [&](std::int64_t step) -> std::function<void(const Gradients&)> {
        if (first_step < 0) first_step = static_cast<int>(step);
        if (step == stop_at) ::raise(SIGINT);
        return nullptr;
      });
    });
  };
  const Words words{"--dim", "8",           "--batch", "4",          "--steps", "12",          "--no-progress", "--optimizer", optimizers, "--warmup",
                    "3",     "--ema-decay", "0.9",     "--drop-key", "0.2",     "--drop-path", "0.1",           "--drop-head", "0.2",      "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"whole"})).status == 0);
  stop_at = 6;
  const Ended stopped = call(folder.path(), main, with(words, {"a"}));
  CHECK(stopped.status == 130);
  CHECK_THAT(stopped.err, contains("interrupted: 0 of 1 runs are finished; go on with --resume --out a"));
  CHECK(checkpoint_in(folder / "a").filename().string().starts_with("admin_profile-seed-0-"));
  stop_at = -1;
  const Ended resumed = call(folder.path(), main, with(words, {"a", "--resume"}));
  INFO(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK(first_step == 7);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "whole/metrics.jsonl"));
  CHECK(checkpoint_in(folder / "a").empty());  // it is done
}

TEST_CASE("a checkpoint that does not fit is named, and the arm begins anew") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  int stop_at = 2;
  std::int64_t began = -1;
  const auto main = [&](int argc, const char* const* argv) {
    Study s("one", "One.");
    s.axis<int>("--depths", {1}, "Depths");
    return s.run(argc, argv, [&](Arm& arm) {
      nn::ViT model(arm.vit());
      began = -1;
      arm.train(model, [&](std::int64_t step) -> std::function<void(const Gradients&)> {
        if (began < 0) began = step;
        if (step == stop_at) ::raise(SIGINT);
        return nullptr;
      });
    });
  };
  REQUIRE(call(folder.path(), main, tiny).status == 130);
  const auto checkpoint = checkpoint_in(folder / "a");
  const std::string good = read_file(checkpoint);
  stop_at = -1;
  const auto resumed = [&](const std::string& content) {
    { std::ofstream(checkpoint, std::ios::binary) << content; }
    std::filesystem::remove(folder / "a/ledger.jsonl");
    const Ended e = call(folder.path(), main, with(tiny, {"--resume"}));
    CHECK(e.status == 0);
    return e.err;
  };
  CHECK_THAT(resumed(good), !contains("begins anew"));
  CHECK(began == 3);
  CHECK_THAT(resumed(good.substr(0, good.size() / 2)), contains("depth 1 seed 0 begins anew: ") && contains(checkpoint.filename().string()));
  CHECK(began == 0);
  nn::TensorFile other;
  { std::ofstream(checkpoint, std::ios::binary) << good; }
  other = nn::read_safetensors(checkpoint);
  const auto changed = [&](const char* field, const std::string& value) {
    nn::TensorFile c = other;
    c.metadata[field] = value;
    nn::write_safetensors(checkpoint, c);
    return read_file(checkpoint);
  };
  CHECK_THAT(resumed(changed("key", "0123")),
             contains("begins anew") && contains("expected the state of an arm with its checksum, got one that was changed"));
  CHECK_THAT(resumed(changed("format", "x")), contains("begins anew") && contains("expected the state of an arm of format"));
  CHECK(began == 0);
  std::string bit = good;
  bit[bit.size() - 5] ^= 1;  // in a tensor
  CHECK_THAT(resumed(bit), contains("begins anew") && contains("got one that was changed"));
  // Of other code: kept beside, under its name.
  ArmCheckpoint c = [&] {
    std::ofstream(checkpoint, std::ios::binary) << good;
    return read_checkpoint(checkpoint);
  }();
  c.code = "0123";
  write_checkpoint(checkpoint, c);
  CHECK_THAT(resumed(read_file(checkpoint)), contains("begins anew") && contains("it is of other code (0123, this is "));
  CHECK(read_checkpoint(checkpoint.parent_path() / (checkpoint.stem().string() + "-0123.safetensors")).code == "0123");
  c.code = "";
  c.key = "0123";
  write_checkpoint(checkpoint, c);
  CHECK_THAT(resumed(read_file(checkpoint)), contains("begins anew") && contains("it is of other settings or data"));
}

TEST_CASE("runs of other code are kept and not used, unless accepted, and damaged lines are repeated") {
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
  const Words resume = with(tiny, {"--resume"});
  const Ended accepted = call(folder.path(), main, with(resume, {"--accept-code", "beef"}));
  CHECK(accepted.status == 0);
  CHECK(study.bodies == 4);
  CHECK(lines_of(file(folder, "a/results.csv")) == 5);
  CHECK_THAT(file(folder, "a/report.html"), contains("runs computed by other code: beef"));
  const Ended unknown = call(folder.path(), main, with(resume, {"--accept-code", "cafe"}));
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, contains("--accept-code cafe: a/ledger.jsonl has runs of " + here + ", beef"));

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
  CHECK_THAT(anew.err, contains("3 runs of b/ledger.jsonl computed by other code, beef (this is " + here +
                                "): kept and not used; --accept-code beef uses them\n"));
  CHECK_THAT(anew.err,
             contains("damaged: b/ledger.jsonl, line 5: ") && contains("; the line stays, its run is repeated unless another line has it\n"));
  CHECK(Ledger(folder / "b/ledger.jsonl").entries().size() == 7);
  CHECK_THAT(file(folder, "b/ledger.jsonl"), contains("{\"key\":\"half\n"));
  // A folder of a program that kept no ledger.
  run.erase("code");
  std::filesystem::create_directory(folder / "old");
  { std::ofstream(folder / "old/run.json") << run.dump(); }
  other[8] = "old";
  const Ended old = call(folder.path(), main, with(other, {"--resume"}));
  CHECK(old.status == 2);
  CHECK_THAT(old.err, contains("old/run.json was written by an older version of this program, which kept no ledger; choose another --out"));
}

TEST_CASE("one arm's failure is not the sweep's, and --resume tries it again") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  bool fails = true;
  study.more = [&](Arm& arm) {
    if (fails && arm.point().contains({{"depth", 1}, {"epsilon", 0.1}})) throw Error("no such\nthing");
  };
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Ended e = call(folder.path(), main, tiny);
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("failed: no such thing  ") && contains("error: 1 of 4 runs failed; --resume tries them again\n"));
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0.1,0,failed,0,"));
  fails = false;
  CHECK(call(folder.path(), main, with(tiny, {"--resume"})).status == 0);
  CHECK(study.bodies == 5);
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0.1,0,ok,4,"));
}

TEST_CASE("evaluation while it trains, of some of the images, and weights that are kept") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words one = with(tiny, {"--depths", "1", "--epsilons", "0.1"});
  REQUIRE(call(folder.path(), main, with(one, {"--eval-every", "2", "--eval-images", "50", "--save-weights", "--ema-decay", "0.5"})).status == 0);
  std::istringstream lines(file(folder, "a/metrics.jsonl"));
  std::vector<std::pair<int, double>> evaluated;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("val_accuracy")) evaluated.emplace_back(json["step"], json["val_accuracy"]);
  }
  REQUIRE(evaluated.size() == 2);
  CHECK(evaluated[0].first == 1);
  CHECK(evaluated[1].first == 3);
  for (const auto& [step, accuracy] : evaluated) CHECK(accuracy * 50 == Approx(std::round(accuracy * 50)).margin(1e-9));
  // The weights give the accuracy that was recorded.
  nn::ViT model({.dim = 8, .depth = 1, .gate = nn::methods::layerscale(0.1)});
  nn::load_weights(model, folder / "a/weights/depth-1-epsilon-0.1-seed-0.safetensors");
  const ImageData data = open_data("glyphs", "");
  const Evaluation e = evaluate(model, data.validation, normalization_of(data.train), 256, 50);
  const auto record = Ledger(folder / "a/ledger.jsonl").entries().at(0).record;
  CHECK(e.accuracy == record.value("val_accuracy"));
  CHECK(e.loss == Approx(record.value("val_loss")).epsilon(1e-6));
}

TEST_CASE("a loop of one's own tells what it trains, or does without what needs that") {
  const TemporaryFolder folder;
  bool tracks = false;
  int stop_at = -1;
  std::vector<double> losses;
  const auto main = [&](int argc, const char* const* argv) {
    return experiment(argc, argv, {.name = "own", .summary = "Own."}, [&](Run& run) {
      nn::ViT model({.dim = 8, .depth = 1, .seed = run.seed()});
      nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
      if (tracks) run.track(model, optimizer);
      for (const Batch& batch : run.batches()) {
        const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
        const Gradients g = backward(loss());
        if (run.diverges(g, loss)) return;
        optimizer.step(g);
        run.log({{"loss", g.loss()}});
        losses.push_back(g.loss());
        if (optimizer.steps_taken() == stop_at) ::raise(SIGINT);
      }
    });
  };
  const Words words{"--batch", "4", "--steps", "6", "--no-progress", "--out"};
  for (const Words& flag : {Words{"--eval-every", "2"}, Words{"--save-weights"}, Words{"--stop-hopeless", "--steps", "40"}}) {
    Words given = words;
    if (flag.size() == 3) given.erase(given.begin() + 2, given.begin() + 4);
    const Ended e = call(folder.path(), main, with(given, with({"u"}, flag)));
    CHECK(e.status == 2);
    CHECK_THAT(e.err, contains(flag[0] + ": this program does not say what it trains; its loop would call track(model, optimizer)"));
    CHECK_FALSE(std::filesystem::exists(folder / "u"));  // nothing began
  }
  losses.clear();
  REQUIRE(call(folder.path(), main, with(words, {"plain"})).status == 0);
  const std::vector<double> whole = losses;
  tracks = true;
  stop_at = 3;
  REQUIRE(call(folder.path(), main, with(words, {"t", "--eval-every", "2", "--save-weights"})).status == 130);
  losses.clear();
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(words, {"t", "--eval-every", "2", "--save-weights", "--resume"})).status == 0);
  CHECK(losses == std::vector<double>(whole.begin() + 3, whole.end()));
  CHECK(std::filesystem::exists(folder / "t/weights/seed-0.safetensors"));
  CHECK_THAT(file(folder, "t/metrics.jsonl"), contains("{\"seed\":0,\"step\":3,\"val_loss\":"));
}

TEST_CASE("hopeless arms stop by the stated rule and are not finished") {
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0;
  const auto main = [&](int argc, const char* const* argv) {
    Study study("hopeless", "Hopeless.");
    study.axis<int>("--depths", {1}, "Depths");
    return study.run(argc, argv, [&](Arm& arm) {
      ++bodies;
      nn::ViT model(arm.vit());
      arm.train(model);
    });
  };
  const Words words{"--dim", "8", "--batch", "4", "--steps", "60", "--lr", "1e-9", "--no-progress", "--out", "a"};
  const Ended e = call(folder.path(), main, with(words, {"--stop-hopeless"}));
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK_THAT(e.err, contains("stopped: loss 2.") && contains("after half of the steps, at least 98 % of chance (2.303)"));
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,hopeless,30,"));
  CHECK_THAT(e.out, contains("hopeless"));
  CHECK_THAT(e.err, contains("1 of 1 run stopped as hopeless, not finished"));
  CHECK(call(folder.path(), main, with(words, {"--rebuild"})).status == 0);  // tables show all that ended
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,hopeless,30,"));
  CHECK(call(folder.path(), main, with(words, {"--stop-hopeless", "--resume"})).status == 0);
  CHECK(bodies == 1);  // the rule would stop it again
  const Ended whole = call(folder.path(), main, with(words, {"--resume"}));
  CHECK(whole.status == 0);
  CHECK(bodies == 2);
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,ok,60,"));
  Words other = words;
  other[10] = "b";
  REQUIRE(call(folder.path(), main, other).status == 0);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "b/results.csv")));  // it went on from where it was stopped
}

TEST_CASE("replay tells a number format that is too narrow from a training that runs away") {
  const TemporaryFolder folder;
  // exp(100 a), which no f32 holds, on the way to something small.
  struct Overflowing : nn::Layer {
    nn::Linear linear;
    Tensor a = parameter("a", zeros({1}), Role::gate);
    Overflowing() : Layer("Overflowing"), linear({.in = 3 * 32 * 32, .out = 10}) { child("linear", linear); }
    Tensor forward(const Tensor& x) const override {
      const Tensor logits = linear(reshape(x, {x.dim(0), x.numel() / x.dim(0)}));
      return logits * 0.01 + exp(a * 100) / exp(a * 100);
    }
  };
  const auto main = [&](int argc, const char* const* argv) {
    return experiment(argc, argv, {.name = "overflow", .summary = "Overflow."}, [&](Run& run) {
      Overflowing model;
      nn::initialize(model, run.seed());
      // Not by gradients, which cancel: a grows by 0.05 a step, and exp(100 a) overflows in step 18.
      nn::Sgd optimizer(model.parameters(), {.lr = 1e-3});
      run.track(model, optimizer);
      for (const Batch& batch : run.batches()) {
        const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
        const Gradients g = backward(loss());
        if (run.diverges(g, loss)) return;
        optimizer.step(g);
        for (nn::Parameter& p : model.parameters())
          if (p.name == "a") nn::assign({{"a", p.value}}, {{"a", p.value.detach() + 0.05}}, "test");
      }
    });
  };
  const Words words{"--batch", "4", "--steps", "60", "--no-progress", "--out", "a"};
  const Ended run = call(folder.path(), main, words);
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(run.err, contains("diverged at step 18: ") && contains("exp"));
  const Ended replayed = call(folder.path(), main, with(words, {"--replay", "seed 0"}));
  INFO(replayed.out << replayed.err);
  CHECK(replayed.status == 0);
  CHECK_THAT(replayed.out, contains("seed 0: recorded as diverged at step 18") && contains("fp32 from step 0: diverged at step 18: ") &&
                               contains("exp") && contains("Overflowing") && contains("f64 from step 8: no divergence up to step 38") &&
                               contains("\nnumerical: "));
  CHECK_THAT(call(folder.path(), main, with(words, {"--replay", "seed 1"})).err,
             contains("a has no diverged run of that name; did you mean 'seed 0'?"));

  const auto wild = [&](int argc, const char* const* argv) {
    Study study("wild", "Wild.");
    study.axis<double>("--lrs", {1e3}, "Rates");
    return study.run(argc, argv, [&](Arm& arm) {
      nn::ViT model(arm.vit({.depth = 2}));
      arm.train(model);
    });
  };
  const Words other{"--dim", "8", "--batch", "4", "--steps", "60", "--checkpoint-every", "0.0001", "--no-progress", "--out", "w"};
  const Ended ran = call(folder.path(), wild, other);
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.err, contains("diverged at step"));
  const Ended again = call(folder.path(), wild, with(other, {"--replay", "lr 1000 seed 0"}));
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, contains("\ndynamical: "));
}

TEST_CASE("replay's f64 steps are those of a run in f64 from the same state") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    Study study("wild", "Wild.");
    study.axis<double>("--lrs", {0.01}, "Rates");
    return study.run(argc, argv, [&](Arm& arm) {
      nn::ViT model(arm.vit({.depth = 2}));
      arm.train(model);
    });
  };
  // Diverged by the limit in step 19 + onset, so that the state before the first steps is where both begin.
  const Words words{"--dim", "8", "--batch", "4", "--steps", "45", "--optimizer", "sgd", "--loss-limit", "0.5", "--no-progress", "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"f32"})).status == 0);
  CHECK_THAT(file(folder, "f32/results.csv"), contains(",diverged,19,"));
  const Ended exact = call(folder.path(), main, with(words, {"f64", "--dtype", "fp64"}));
  CHECK_THAT(file(folder, "f64/results.csv"), contains(",diverged,19,"));
  std::istringstream lines(file(folder, "f64/metrics.jsonl"));
  double loss = 0;
  for (std::string line; std::getline(lines, line);)
    if (const auto json = nlohmann::json::parse(line); json.contains("loss")) loss = json["loss"];
  const Ended replayed = call(folder.path(), main, with(words, {"f32", "--replay", "lr 0.01 seed 0"}));
  INFO(replayed.out << replayed.err);
  // The same initial weights but for f32's rounding: the same losses to some digits, where those after 19 updates would be others.
  CHECK_THAT(replayed.out, contains("f64 from step 0: diverged at step 19") && contains("\ndynamical: "));
  const std::string said = fmt::format("loss {:.4g}", loss);
  CHECK_THAT(replayed.out, contains(said));
}

TEST_CASE("a study that is put together wrongly says so") {
  const TemporaryFolder folder;
  const auto error = [&](const std::function<void(Study&)>& declare) {
    const Ended e = call(folder.path(),
                         [&](int argc, const char* const* argv) {
                           return exit_status([&] {
                             Study study("wrong", "Wrong.");
                             declare(study);
                             return study.run(argc, argv, [](Arm&) {});
                           });
                         },
                         {"--steps", "1", "--no-progress"});
    CHECK(e.status == 1);
    CHECK(lines_of(e.err) == 1);
    return e.err;
  };
  const auto axis = [](const char* option) { return [option](Study& s) { s.axis<std::string>(option, {"a"}, "An axis"); }; };
  CHECK_THAT(error(axis("--dtypes")),
             contains("[study] expected axes that stand for no option of the library, or for one that each arm reads, got one for --dtype"));
  CHECK_THAT(error(axis("--statuss")), contains("[study] expected axes with names of their own, got status for --statuss"));
  CHECK_THAT(error(axis("--seeds")), contains("expected axes with options of their own (seeds have --seeds), got a second --seeds"));
  CHECK_THAT(error([](Study& s) { s.searched<int>("depth"); }), contains("expected search() and searched axes together, got searched axes alone"));
  CHECK_THAT(error([](Study& s) { s.search([](const Search&) { return std::vector<Point>(); }); }), contains("got search() alone"));
  CHECK_THAT(error([](Study& s) {
               s.claim("x", "y", lower("loss", {{"depht", 1}}, {{"depht", 2}}));
             }),
             contains("[claim] \"x\": expected axes of this study, got depht"));
  CHECK_THAT(error([](Study& s) { s.file("ledger.jsonl", nullptr); }),
             contains("expected a file of the study's own in the run's folder, got ledger.jsonl"));
  CHECK_THAT(error([](Study& s) { s.searched<int>("depth").at_least(1); }), contains("bounds of the axis depth"));
  // Plurals: "--batches" is the batch, which arms read.
  const Ended batches = call(folder.path(),
                             [&](int argc, const char* const* argv) {
                               Study study("batches", "Batches.", {.network = false, .optimization = false});
                               study.axis<int>("--batches", {4, 8}, "Batches");
                               return study.run(argc, argv, [](Arm& arm) { arm.measure({{"size", arm.options().batch}}); });
                             },
                             {"--steps", "1", "--no-progress", "--out", "b"});
  CHECK(batches.status == 0);
  CHECK_THAT(file(folder, "b/results.csv"), contains("batch,seed,status,steps,seconds,size\n4,0,ok,0,0,4\n8,0,ok,0,0,8\n"));
  CHECK(RunOptions().deterministic == "strict");
}

TEST_CASE("what does not go together in a sweep is said before anything is made") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  for (const auto& [flags, message] : std::vector<std::pair<Words, std::string>>{
           {{"--shard", "0/2"}, "--shard expects I/N with I in 1..N, such as 2/5, got '0/2'"},
           {{"--shard", "3/2"}, "--shard expects I/N"},
           {{"--shard", "1"}, "--shard expects I/N"},
           {{"--shard", "1/2x"}, "--shard expects I/N"},
           {{"--jobs", "2", "--deterministic", "threads"}, "--jobs 2 changes the threads of a run, and with --deterministic threads its bits"},
           {{"--jobs", "2", "--profile", "--steps", "9"}, "--profile is about one run at a time"},
           {{"--jobs", "0"}, "--jobs"},
           {{"--checkpoint-every", "-1"}, "--checkpoint-every"},
           {{"--epsilons", ""}, "--epsilons expects a list, got nothing"},
           {{"--epsilons", "-1"}, "--epsilons expects numbers of at least 0"},
           {{"--epsilons", "many"}, "--epsilons expects numbers of at least 0 such as 0.001,0.01, got 'many'"},
           {{"--rebuild"}, "--rebuild needs --out DIR"},
           {{"--replay", "x"}, "--replay needs --out DIR"},
           {{"--rebuild", "--out", "nowhere"}, "--out nowhere: no such folder"},
           {{"--rebuild", "--resume", "--out", "a"}, "exclude each other"},
           {{"--rebuild", "--dry-run", "--out", "a"}, "exclude each other"},
           {{"--stop-hopeless", "--steps", "39"},
            "--stop-hopeless looks at 20 steps in the first half of a run; give --steps of at least 40, got 39"},
           {{"--optimizer", "rmsprop"}, "unknown optimizer"},
           {{"--warmup", "9", "--steps", "5"}, "--warmup 9 is longer than --steps 5"}}) {
    const Ended e = call(folder.path(), main, flags);
    INFO(e.err);
    CHECK(e.status == 2);
    CHECK(lines_of(e.err) == 1);
    CHECK_THAT(e.err, contains(message));
  }
  CHECK(study.bodies == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));
}
