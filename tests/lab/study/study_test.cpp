// Tests of studies: axes, files, claims, and options that exclude each other.
#include "experiments/vision/study.h"
#include "experiments/vision/data/open_data.h"

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "experiments/lab/record/ledger.h"
#include "experiments/lab/report/curves.h"
#include "experiments/vision/problem/evaluate.h"
#include "experiments/vision/problem/linear_model.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("a study in one file has axes, files, a table, claims and the order of --dry-run") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Ended e = call(folder.path(), main, with(tiny, {"--seeds", "0..1"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK(study.bodies == 8);
  const std::string csv = file(folder, "a/results.csv");
  CHECK(csv.starts_with(
      "depth,epsilon,seed,status,steps,seconds,train_loss,val_loss,val_accuracy,images_per_second\n1,0,0,ok,4,"));
  CHECK(lines_of(csv) == 9);
  CHECK(lines_of(file(folder, "a/ledger.jsonl")) == 8);
  CHECK(lines_of(file(folder, "a/metrics.jsonl")) == 8 * 4);
  CHECK(file(folder, "a/metrics.jsonl").starts_with("{\"depth\":1,\"epsilon\":0.0,\"seed\":0,\"step\":0,\"loss\":"));
  CHECK_THAT(
      e.out,
      contains("depth  epsilon") && contains("±") &&
          contains(
              "eps > 0 trains better than 0 (CaiT, table 1)\n  undecided: 0:0 of 2 seeds, no seed trained with both"));
  CHECK_THAT(file(folder, "a/report.html"), contains("Does the initial value of LayerScale matter?") &&
                                                contains("eps &gt; 0 trains better") && contains("<svg") &&
                                                contains("<th>epsilon</th>"));
  CHECK_THAT(file(folder, "a/claims.csv"), contains("\neps > 0 trains better than 0,\"CaiT, table 1\","));
  CHECK_THAT(file(folder, "a/results.md"), contains("| depth | epsilon |") && contains("| eps > 0 trains better"));

  const Ended dry =
      call(folder.path(), main, {"--dim", "8", "--batch", "4", "--steps", "4", "--seeds", "0..1", "--dry-run"});
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
  CHECK_THAT(dry.out, contains("8 trials of 4 steps of 4 images: 32 steps, 128 images") &&
                          contains("parameters of a network: ") && contains("training: about "));
  CHECK_THAT(call(folder.path(), main, {"--help"}).out,
             contains("--depths N,..") && contains("--epsilons N,..") && contains("--lr N") && !contains("--gate "));
}

TEST_CASE("a dry run measures steps with the threads of one job") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  std::set<int> threads;
  study.more = [&](lab::Trial&) { threads.insert(num_threads()); };
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words look{"--dim", "8", "--batch", "4", "--steps", "4", "--threads", "8", "--dry-run"};
  const auto measured_on = [&](const std::string& jobs) {
    threads.clear();
    const Ended e = call(folder.path(), main, with(look, {"--jobs", jobs}));
    INFO(e.err);
    CHECK(e.status == 0);
    return threads;
  };
  CHECK(measured_on("1") == std::set{8});
  CHECK(measured_on("2") == std::set{4});
  CHECK(measured_on("8") == std::set{2});  // four trials need only four jobs
}

TEST_CASE("an axis may replace any option of the library") {
  const TemporaryFolder folder;
  std::mutex mutex;
  std::set<std::tuple<std::int64_t, double, std::int64_t, std::string>> seen;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("axes", "Axes.");
    study.axis<int>("--dims", {8, 16}, "Widths");
    study.axis<double>("--lrs", {1e-3}, "Rates");
    study.axis<int>("--warmups", {0, 2}, "Warm-ups");
    study.axis<std::string>("--optimizers", {"sgd", "adamw"}, "Optimizers");
    study.axis<double>("--drop-keys", {0.25}, "Rates of DropKey");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      const std::lock_guard lock(mutex);
      const nn::ViTOptions o = vision::vit(trial, {.depth = 1});
      CHECK(o.drop_key.rate == 0.25);
      seen.emplace(o.dim, trial.point().get<double>("lr"), trial.warmup(), trial.point().get<std::string>("optimizer"));
      nn::ViT model(o);
      trial.train(model);
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
  // The losses of all trials differ, so the trainings used the values of the axes.
  std::set<std::string> losses;
  std::istringstream rows(timeless(file(folder, "a/results.csv")));
  for (std::string row; std::getline(rows, row);)
    if (row.find(",ok,") != row.npos) losses.insert(row.substr(row.find(",ok,")));
  CHECK(losses.size() == 8);
}

TEST_CASE("an axis whose value no trial reads is named once") {
  const TemporaryFolder folder;
  const auto run = [&](bool reads) {
    const auto main = [&](int argc, const char* const* argv) {
      vision::Study study("unread", "Does the ratio matter?");
      const auto ratio = study.axis<double>("--ratios", {1, 2}, "Ratios");
      study.axis<int>("--dims", {8, 16}, "Widths");  // the axis of an option: vit() has its value
      return study.run(argc, argv, [&](lab::Trial& trial) {
        if (reads) trial.measure({{"measured", trial[ratio]}});
        nn::ViT model(vision::vit(trial, {.depth = 1, .method = "pre"}));
        trial.train(model);
      });
    };
    return call(folder.path(), main, {"--heads", "2", "--batch", "4", "--steps", "2", "--overwrite", "--out", "a"});
  };
  const Ended silent = run(false), told = run(true);
  CHECK(silent.status == 0);
  CHECK_THAT(silent.err, contains("axis ratio") && !contains("axis dim"));
  CHECK(silent.err.find("axis ratio") == silent.err.rfind("axis ratio"));
  CHECK(told.status == 0);
  CHECK_THAT(told.err, !contains("did not read"));
}

TEST_CASE("a training with a moving average ends with the weights that were evaluated") {
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) {
    vision::Study study("averaged", "Averaged.");
    study.axis<double>("--ema-decays", {0, 0.9}, "Decays");
    study.columns({"val_loss", "again"});
    return study.run(argc, argv, [](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 1, .method = "pre"}));
      trial.train(model);
      trial.measure(
          {{"again",
            evaluate(model, vision::images(trial).data().validation, vision::images(trial).normalization()).loss}});
    });
  };
  const Ended e = call(folder.path(), main, with(tiny, {"--lr", "0.1", "--warmup", "0"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  std::istringstream rows(file(folder, "a/results.csv"));
  std::set<std::string> losses;
  std::string row;
  for (std::getline(rows, row); std::getline(rows, row);) {
    std::istringstream cells(row);
    std::vector<std::string> cell(7);
    for (std::string& text : cell) std::getline(cells, text, ',');
    CHECK(cell[5] == cell[6]);
    losses.insert(cell[5]);
  }
  CHECK(losses.size() == 2);
}

TEST_CASE("a failed trial does not end the sweep and --resume tries it again") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  bool fails = true;
  study.more = [&](lab::Trial& trial) {
    if (fails && trial.point().contains({{"depth", 1}, {"epsilon", 0.1}})) throw Error("no such\nthing");
  };
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Ended e = call(folder.path(), main, tiny);
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("failed: no such thing  ") && contains("error: 1 of 4 trials failed; --resume "));
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0.1,0,failed,0,"));
  fails = false;
  CHECK(call(folder.path(), main, with(tiny, {"--resume"})).status == 0);
  CHECK(study.bodies == 5);
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0.1,0,ok,4,"));
}

TEST_CASE("wrong declarations of a study are errors") {
  const TemporaryFolder folder;
  const auto error = [&](const std::function<void(vision::Study&)>& declare) {
    const Ended e = call(folder.path(),
                         [&](int argc, const char* const* argv) {
                           return exit_status([&] {
                             vision::Study study("wrong", "Wrong.");
                             declare(study);
                             return study.run(argc, argv, [](lab::Trial&) {});
                           });
                         },
                         {"--steps", "1", "--no-progress"});
    CHECK(e.status == 1);
    CHECK(lines_of(e.err) == 1);
    return e.err;
  };
  const auto axis = [](const char* option) {
    return [option](vision::Study& s) { s.axis<std::string>(option, {"a"}, "An axis"); };
  };
  CHECK_THAT(error(axis("--dtypes")), contains("[study] expected an axis that replaces no option of the library") &&
                                          contains("got one for --dtype"));
  CHECK_THAT(error(axis("--statuss")), contains("[study] expected unused names of axes, got status for --statuss"));
  CHECK_THAT(error(axis("--seeds")),
             contains("expected an unused option for an axis (--seeds is for seeds), got a second --seeds"));
  CHECK_THAT(error([](vision::Study& s) { s.searched<int>("depth"); }),
             contains("expected search() and searched axes together, got only searched axes"));
  CHECK_THAT(error([](vision::Study& s) { s.search([](const Search&) { return std::vector<Point>(); }); }),
             contains("got only search()"));
  CHECK_THAT(error([](vision::Study& s) {
               s.claim("x", "y", lower("loss", {{"depht", 1}}, {{"depht", 2}}));
             }),
             contains("[claim] \"x\": expected axes of this study, got depht"));
  CHECK_THAT(error([](vision::Study& s) {
               s.axis<int>("--depths", {1}, "Depths");
               s.claim("y", "z", lower("loss", {{"depth", 1}, {"seed", 1}}, {{"depth", 2}}));
             }),
             contains("[claim] \"y\": expected two points on the same axes, got depth 1 seed 1 and depth 2"));
  CHECK_THAT(
      error([](vision::Study& s) { s.output("ledger.jsonl", [](const StudyResults&) { return std::string(); }); }),
      contains("expected an unused file name without folders for an output, got ledger.jsonl"));
  CHECK_THAT(error([](vision::Study& s) { s.searched<int>("depth").at_least(1); }),
             contains("bounds of the searched axis depth"));
  // The axis of "--batches" is named "batch" and replaces --batch.
  const Ended batches =
      call(folder.path(),
           [&](int argc, const char* const* argv) {
             vision::Study study("batches", "Batches.", {.network = false, .optimization = false});
             study.axis<int>("--batches", {4, 8}, "Batches");
             return study.run(argc, argv, [](lab::Trial& trial) { trial.measure({{"size", trial.options().batch}}); });
           },
           {"--steps", "1", "--no-progress", "--out", "b"});
  CHECK(batches.status == 0);
  CHECK_THAT(file(folder, "b/results.csv"),
             contains("batch,seed,status,steps,seconds,size\n4,0,ok,0,0,4\n8,0,ok,0,0,8\n"));
  CHECK(StudyOptions().deterministic == Determinism::strict);
  // If "steps" is an axis, the column with the number of steps taken has another name.
  const auto lengths = [&](int argc, const char* const* argv) {
    vision::Study study("lengths", "Lengths.");
    study.axis<int>("--steps", {1, 2}, "Steps").named("steps");
    return study.run(argc, argv, [](lab::Trial& trial) {
      trial.measure({{"size", static_cast<double>(trial.steps())}});
    });
  };
  const Ended long_or_short = call(folder.path(), lengths, {"--no-progress", "--out", "s", "--json"});
  INFO(long_or_short.err);
  REQUIRE(long_or_short.status == 0);
  CHECK_THAT(file(folder, "s/results.csv"),
             contains("steps,seed,status,steps_taken,seconds,size\n1,0,ok,0,0,1\n2,0,ok,0,0,2\n"));
  CHECK(nlohmann::json::parse(long_or_short.out)["results"][1]["steps"] == 2);
  // An axis refuses the same values that its option refuses.
  const Ended optimizers = call(folder.path(),
                                [&](int argc, const char* const* argv) {
                                  vision::Study study("optimizers", "Optimizers.");
                                  study.axis<std::string>("--optimizers", {"adamw"}, "Optimizers");
                                  return study.run(argc, argv, [](lab::Trial&) {});
                                },
                                {"--steps", "1", "--no-progress", "--out", "o", "--optimizers", "adamw,admw"});
  CHECK(optimizers.status == 2);
  CHECK_THAT(optimizers.err, contains("--optimizer: unknown optimizer 'admw'; did you mean 'adamw'?"));
  CHECK_FALSE(std::filesystem::exists(folder / "o"));
}

TEST_CASE("wrong claims are reported when the study starts or when their first trial has ended") {
  const TemporaryFolder folder;
  int bodies = 0;
  const auto ends = [&](const Comparison& comparison) {
    bodies = 0;
    const auto main = [&](int argc, const char* const* argv) {
      vision::Study study("claims", "Claims.", {.network = false, .optimization = false});
      study.axis<int>("--depths", {1, 2}, "Depths");
      study.axis<std::string>("--gates", {"pre", "post"}, "Gates").one_of("gate", {"pre", "post", "rezero"});
      study.axis<std::string>("--forms", {"plain", "block"}, "Forms");
      study.only(
          [](const Point& p) { return p.get<std::string>("form") == "plain" || p.get<std::int64_t>("depth") == 2; });
      study.claim("so it is", "a test", comparison);
      return study.run(argc, argv, [&](lab::Trial& trial) {
        ++bodies;
        trial.measure({{"train_loss", static_cast<double>(trial.point().get<std::int64_t>("depth"))}});
        if (trial.point().get<std::string>("gate") == "post") trial.measure({{"of_post", 1}});
      });
    };
    return call(folder.path(), main, {"--steps", "1", "--seeds", "0..1", "--no-progress", "--overwrite", "--out", "a"});
  };
  const auto refused = [&](const Comparison& comparison, int after, const std::string& text) {
    const Ended e = ends(comparison);
    INFO(e.err);
    CHECK(e.status == 1);
    CHECK(bodies == after);
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1 + after);  // stderr has one line for each trial
    CHECK_THAT(e.err, contains("error: [claim] \"so it is\": " + text));
  };
  refused(lower("train_loss", {{"depht", 1}}, {{"depht", 2}}), 0,
          "expected axes of this study, got depht; did you mean 'depth'?");
  refused(lower("train_loss", {{"gate", "per"}}, {{"gate", "post"}}), 0,
          "expected a value that --gates accepts, got 'per'; did you mean 'pre'?");
  refused(lower("train_loss", {{"depth", 1}}, {{"depth", 2}}).at({{"gate", 1}}), 0,
          "expected a text for gate, got the number 1");
  refused(lower("train_loss", {{"depth", "1"}}, {{"depth", 2}}), 0, "expected a number for depth, got the text 1");
  refused(lower("train_loss", {{"depth", 1}}, {{"gate", "pre"}}), 0,
          "expected two points on the same axes, got depth 1 and pre");
  // The study ends with an error after the first trial of the claim.
  refused(lower("train_los", {{"depth", 1}}, {{"depth", 2}}), 1,
          "expected a value that trials measure, got train_los, which depth 1 gate pre form plain seed 0 did not "
          "measure; did "
          "you mean 'train_loss'?");
  refused(above("val_loss", 1, {{"depth", 1}, {"gate", "post"}}), 3,
          "expected a value that trials measure, got val_loss, which depth 1 gate post");
  // Claims about values that this call does not have are reported in one line on stderr and in the report.
  for (const auto& [comparison, text] : std::vector<std::pair<Comparison, std::string>>{
           {lower("train_loss", {{"depth", 1}}, {{"depth", 12}}), "so it is: no depth 12 in --depths 1,2"},
           {lower("train_loss", {{"gate", "pre"}}, {{"gate", "rezero"}}),
            "so it is: no gate rezero in --gates pre,post"},
           {lower("train_loss", {{"form", "plain"}}, {{"form", "blok"}}),
            "so it is: no form blok in --forms plain,block, did you mean 'block'?"},
           {below("train_loss", 1, {{"depth", 1}, {"form", "block"}}),
            "so it is: the study does not run depth 1 form block"},
           {lower("train_loss", {{"depth", 1}}, {{"depth", 1}}), "so it is: compares depth 1 with itself"},
           {above("train_loss", 1, {{"seed", 7}}), "so it is: no seed 7 in --seeds 0,1"}}) {
    const Ended e = ends(comparison);
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK_THAT(e.err, contains("1 claim not judged in this call: " + text + "\n"));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1 + bodies);
    std::string shown = text;
    for (std::size_t at = 0; (at = shown.find('\'', at)) != shown.npos;) shown.replace(at, 1, "&#39;");
    CHECK_THAT(file(folder, "a/report.html"), contains("claims not judged") && (contains(text) || contains(shown)));
  }
  // A claim may be about a value that only the trials of the claim measure.
  const Ended fine = ends(above("of_post", 0, {{"gate", "post"}}));
  CHECK(fine.status == 0);
  CHECK_THAT(fine.err, !contains("claim"));
  // --rebuild writes the tables even if a claim is wrong.
  REQUIRE(ends(lower("train_loss", {{"depth", 1}}, {{"depth", 2}})).status == 0);
  const auto rebuilt = [&](int argc, const char* const* argv) {
    vision::Study study("claims", "Claims.", {.network = false, .optimization = false});
    study.axis<int>("--depths", {1, 2}, "Depths");
    study.axis<std::string>("--gates", {"pre", "post"}, "Gates");
    study.axis<std::string>("--forms", {"plain"}, "Forms");
    study.claim("so it is", "a test", lower("train_los", {{"depth", 1}}, {{"depth", 2}}));
    return study.run(argc, argv, [](lab::Trial&) {});
  };
  const Ended tables = call(folder.path(), rebuilt, {"--steps", "1", "--seeds", "0..1", "--out", "a", "--rebuild"});
  INFO(tables.err);
  CHECK(tables.status == 0);
  CHECK_THAT(tables.err, contains("expected a value that trials measure, got train_los"));
}

TEST_CASE("the ledger and the report have the options of the network that the body sets") {
  const TemporaryFolder folder;
  struct Own : nn::Layer {
    nn::Child<nn::Linear> head{this, "head", {.in = 1024, .out = 10}};
    Own() { nn::initialize(*this, 0); }
    Tensor forward(const Tensor& x) const override { return head(slice(reshape(x, {x.dim(0), -1}), 1, 0, 1024)); }
  };
  enum class Body { trains, asks, own } what = Body::trains;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("fixed", "Fixed.");
    const auto depth = study.axis<int>("--depths", {1, 2}, "Depths");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      if (what == Body::own) {
        Own model;
        return trial.train(model);
      }
      nn::ViTOptions o = vision::vit(trial, {.depth = trial[depth], .method = "post"});
      if (what == Body::asks) return;  // the body returns before it trains
      o.mlp_ratio = 3;
      nn::ViT model(o);
      trial.train(model);
    });
  };
  const auto settings = [&] {
    const Ended e = call(folder.path(), main,
                         {"--dim", "8", "--batch", "4", "--steps", "1", "--no-progress", "--overwrite", "--out", "a"});
    INFO(e.err);
    REQUIRE(e.status == 0);
    const std::string page = file(folder, "a/report.html");
    const std::size_t at = page.find("trained</");
    REQUIRE(at != page.npos);
    return page.substr(at, page.find("parameters", at) == page.npos ? 400 : page.find("parameters", at) + 40 - at);
  };
  CHECK_THAT(settings(), contains("vit, image 32, channels 3") && contains("depth 1 or 2, ") &&
                             contains("mlp_ratio 3, ") && contains("gate post, ") && contains("pool mean") &&
                             contains("parameters "));
  CHECK_THAT(file(folder, "a/ledger.jsonl"),
             contains("\"model\":{\"model\":\"vit\",") && contains("\"gate\":\"post\""));
  // The description of the network survives --rebuild and merging of folders.
  const std::string ledger = file(folder, "a/ledger.jsonl");
  REQUIRE(call(folder.path(), main, {"--dim", "8", "--batch", "4", "--steps", "1", "--out", "a", "--rebuild"}).status ==
          0);
  CHECK_THAT(file(folder, "a/report.html"), contains("gate post"));
  CHECK(file(folder, "a/ledger.jsonl") == ledger);
  std::filesystem::copy(folder / "a", folder / "b", std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder / "b/ledger.jsonl");
  const Ledger first(folder / "a/ledger.jsonl");
  Ledger(folder / "b/ledger.jsonl").append_all(first.entries());
  CHECK_THAT(file(folder, "b/ledger.jsonl"), contains("\"gate\":\"post\""));
  what = Body::asks;
  CHECK_THAT(settings(), contains("gate post, "));
  what = Body::own;
  CHECK_THAT(settings(), contains("Own, parameters 10250"));
}

TEST_CASE("a default warm-up keeps its share of the steps", "[long]") {
  const TemporaryFolder folder;
  std::set<std::int64_t> trained;
  std::string axis;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("warm", "Warm.");
    study.options().steps = 300, study.options().warmup = 30;
    study.cli().preset("long", "Long.", {{"--steps 1500 --warmup 100"}});
    study.cli().preset("quick", "Quick.", {{"--steps 200"}});
    if (axis == "steps") study.axis<int>("--steps", {20, 60}, "Steps").named("steps");
    if (axis == "warmup") study.axis<std::int64_t>("--warmups", {0, 60}, "Warm-ups");
    return study.run(argc, argv, [&](lab::Trial& trial) { trained.insert(trial.warmup()); });
  };
  const auto warmups = [&](const Words& words) {
    trained.clear();
    const Ended e = call(folder.path(), main, with({"--no-progress", "--overwrite", "--out", "a"}, words));
    INFO(e.err);
    REQUIRE(e.status == 0);
    return trained;
  };
  using Set = std::set<std::int64_t>;
  CHECK(warmups({}) == Set{30});
  CHECK(warmups({"--steps", "30"}) == Set{3});  // 3, not the default 30, which would be all steps
  CHECK(warmups({"--steps", "20"}) == Set{2});  // 2, and no error
  CHECK(warmups({"--steps", "600"}) == Set{60});
  CHECK(warmups({"--steps", "30", "--warmup", "30"}) == Set{30});
  CHECK(warmups({"--preset", "long"}) == Set{100});
  CHECK(warmups({"--preset", "long", "--steps", "30"}) == Set{2});
  CHECK(warmups({"--preset", "quick"}) == Set{30});
  const Ended config = call(folder.path(), main, {"--preset", "long", "--steps", "30", "--print-config"});
  CHECK_THAT(config.out, contains("\"warmup\": 2,") && contains("[6.67 % of the steps, the default share]"));
  { std::ofstream(folder / "c.json") << config.out; }
  CHECK(warmups({"--config", "c.json"}) == Set{2});
  CHECK(warmups({"--config", "c.json", "--steps", "15"}) == Set{2});  // the config file sets the warm-ups
  { std::ofstream(folder / "c.json") << "{\"preset\": \"long\", \"steps\": 30}"; }
  CHECK(warmups({"--config", "c.json"}) == Set{2});
  axis = "steps";
  CHECK(warmups({}) == Set{2, 6});
  CHECK_THAT(file(folder, "a/report.html"), contains("warm-up 10 % of the steps"));
  axis = "warmup";
  CHECK(warmups({}) == Set{0, 60});
  CHECK(warmups({"--steps", "30"}) == Set{0, 6});
  CHECK(warmups({"--steps", "2"}) == Set{0, 1});  // the two values must stay different
  const Ended said = call(folder.path(), main, {"--steps", "30", "--dry-run"});
  CHECK_THAT(said.err, contains("--warmups 0,6 of 30 steps: ") && contains("0,60 of 300\n"));
  CHECK(warmups({"--steps", "30", "--warmups", "20"}) == Set{20});
}

TEST_CASE("a report has reference levels") {
  const TemporaryFolder folder;
  double accuracy = 0.36;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("levels", "Levels.", {.network = false, .optimization = false});
    const auto depth = study.axis<int>("--depths", {1, 2}, "Depths");
    study.reference("score", 3, "the optimum");
    study.output([](const StudyResults& r) {
      return Section{.title = "Charts",
                     .charts = {plot_of(r, {.value = "val_accuracy", .axis = "depth"}), dots_of(r, "score", "Score"),
                                dots_of(r, "other", "Other")}};
    });
    return study.run(argc, argv, [&](lab::Trial& trial) {
      trial.measure({{"val_accuracy", accuracy + 0.01 * trial[depth]},
                     {"train_loss", 1.6},
                     {"score", 3.0 - trial[depth]},
                     {"other", 1}});
    });
  };
  const auto ended = [&] {
    return call(folder.path(), main, {"--steps", "1", "--seeds", "0..1", "--no-progress", "--overwrite", "--out", "a"});
  };
  const LinearModel linear = linear_model_of_glyphs();
  REQUIRE((0.37 < linear.val_accuracy && linear.val_accuracy < 0.5));
  Ended e = ended();
  INFO(e.err);
  REQUIRE(e.status == 0);
  accuracy = linear.val_accuracy - 0.03;
  e = ended();
  const std::string levels = fmt::format(
      "val_accuracy {:.3g} %), the optimum (score 3). No trial is better than a linear "
      "model on the pixels.\n",
      100 * linear.val_accuracy);
  CHECK_THAT(e.out, contains("Known levels: chance (train_loss 2.303, val_accuracy 10 %), a linear model") &&
                        contains(levels));
  const std::string page = file(folder, "a/report.html");
  CHECK_THAT(page, contains("a linear model on the pixels") && contains(">the optimum (beyond the frame)<") &&
                       contains("No trial is better than"));
  CHECK_THAT(file(folder, "a/results.md"), contains("No trial is better than"));
  CHECK_THAT(file(folder, "a/run.json"), contains("\"references\": ["));
  REQUIRE(call(folder.path(), main, {"--steps", "1", "--seeds", "0..1", "--out", "a", "--rebuild"}).status == 0);
  CHECK_THAT(file(folder, "a/results.md"), contains("No trial is better than"));
  accuracy = linear.val_accuracy;  // the deeper trial is better than the linear model
  CHECK_THAT(ended().out, contains("Known levels:") && !contains("No trial is better"));
  // The axis of an accuracy ends at 100 %.
  accuracy = 0.98;
  REQUIRE(ended().status == 0);
  const std::string svg = file(folder, "a/figures/val-accuracy-by-depth.svg");
  CHECK_THAT(svg, contains(">1.000<") && !contains(">1.0005<") && !contains(">1.001<") && !contains(">1.002<") &&
                      !contains(">1.005<"));
}

TEST_CASE("the stored levels of the linear model of glyphs equal computed levels") {
  const ImageData data = open_data("glyphs", "");
  const LinearModel said = linear_model_of_glyphs(), computed = linear_model(data).value();
  INFO(fmt::format("{} {} {}", computed.train_loss, computed.val_loss, computed.val_accuracy));
  CHECK(computed.train_loss == Approx(said.train_loss).margin(0.002));
  CHECK(computed.val_loss == Approx(said.val_loss).margin(0.002));
  CHECK(computed.val_accuracy == Approx(said.val_accuracy).margin(0.003));
}

TEST_CASE("options that do not go together are refused before any file is made") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  for (const auto& [flags, message] : std::vector<std::pair<Words, std::string>>{
           {{"--shard", "0/2"}, "--shard expects I/N with I in 1..N, such as 2/5, got '0/2'"},
           {{"--shard", "3/2"}, "--shard expects I/N"},
           {{"--shard", "1"}, "--shard expects I/N"},
           {{"--shard", "1/2x"}, "--shard expects I/N"},
           {{"--jobs", "2", "--deterministic", "threads"}, "give --deterministic strict or --jobs 1"},
           {{"--jobs", "2", "--profile", "--steps", "9"}, "got --jobs 2"},
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
           {{"--stop-hopeless", "--steps", "39"}, "give --steps of at least 40, got 39"},
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

TEST_CASE("a study may leave combinations out and add sections and published results") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("parts", "Parts.");
    const auto rate = study.axis<double>("--rates", {0, 0.1, 0.3}, "Rates").at_least(0);
    const auto form = study.axis<std::string>("--forms", {"a", "b"}, "Forms").one_of("form", {"a", "b"});
    study.only([&](const Point& p) {
      return p.get<double>("rate") > 0 || p.get<std::string>("form") == form.values().front();
    });
    study.claim("0.1 ends above 20", "arithmetic", above("score", 20, {{"rate", 0.1}}));
    study.output([](const StudyResults& r) {
      using enum TextTable::Align;
      Section section{
          .title = "How <many>", .caption = "Counted.", .charts = {plot_of(r, {.value = "score", .axis = "rate"})}};
      section.table.column("trials", right);
      section.table.row({std::to_string(r.records.size())});
      return section;
    });
    study.published({{"rate", 0.3}}, "score", "9 of 10", "A. Author 1999");
    study.published({{"rate", 0.7}}, "score", "nobody has this", "A. Author 1999");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      trial.measure({{"score", 10 * trial[rate] + static_cast<double>(trial.seed() % 3)}});
    });
  };
  const Ended e = call(folder.path(), main, {"--seeds", "0..5", "--at-lr", "1e-3", "--no-progress", "--out", "a"});
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK(lines_of(file(folder, "a/results.csv")) == 1 + 5 * 6);
  CHECK_THAT(e.out, contains("How <many>\ntrials\n    30\n") &&
                        contains("0.1 ends above 20 (arithmetic)\n  disagree: a: disagree, 0:6, lower by 18") &&
                        contains("; compared with 20; at lr 0.001; b: disagree") && contains("Published results") &&
                        contains("rate 0.3  score  9 of 10    A. Author 1999") && !contains("nobody has this"));
  CHECK_THAT(file(folder, "a/report.html"), contains("<h2>How &lt;many&gt;</h2>") &&
                                                contains("<td class=\"num\">30</td>") && contains("score by rate") &&
                                                contains("<td>A. Author 1999</td>"));
  CHECK_THAT(file(folder, "a/results.md"), contains("How \\<many>. Counted.\n\n| trials |\n| ---: |\n| 30 |\n"));
  CHECK(std::filesystem::exists(folder / "a/figures/score-by-rate.svg"));
  const std::string csv = file(folder, "a/figures/score-by-rate.csv");
  CHECK_THAT(csv, contains("0.1,2") && contains("0.3,4"));
  // Form b has no rate of 0, so the line of form b has two points.
  CHECK(lines_of(csv) == 1 + 3 + 2);
  const Ended none =
      call(folder.path(), main, {"--rates", "0", "--forms", "b,a", "--seeds", "0", "--no-progress", "--dry-run"});
  CHECK(none.status == 0);
  CHECK_THAT(none.out, contains("rate 0 form b seed 0\n") && !contains("form a"));
}

TEST_CASE("a study that leaves all combinations out is an error") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("nothing", "Nothing.");
    study.axis<int>("--sizes", {1, 2}, "Sizes");
    study.only([](const Point&) { return false; });
    return study.run(argc, argv, [](lab::Trial&) {});
  };
  const Ended e = call(folder.path(), main, {"--no-progress"});
  CHECK(e.status == 2);
  CHECK_THAT(e.err, contains("error: nothing runs no combination of these values"));
}
