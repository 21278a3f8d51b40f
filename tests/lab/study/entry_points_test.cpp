// Tests that call the programs of experiments/ as functions. The tests use a custom gate, and constants of methods on
// the command line.
#include <plumb/vision.h>

#include "core/atomic_file.h"
#include "experiments/studies.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/small_studies.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

struct Prores : nn::ScaleGate {  // x + f(LN(x)) / T
  explicit Prores(const nn::GateContext& c) : ScaleGate(full({1}, 1 / c.constant("T"))) {}
};

// Registers the gate once in this process.
void register_prores() {
  static const bool once = [] {
    nn::register_method<Prores>(
        "prores", {.formula = "x + f(LN(x)) / T",
                   .source = "this test",
                   .constants = {{.name = "T", .standard = 3, .least = 1, .meaning = "divides every branch"}}});
    return true;
  }();
  CHECK(once);
}

const Words small_detr{"--heads",   "2", "--hidden",   "8",   "--encoder",     "1", "--decoder",   "1",
                       "--queries", "3", "--backbone", "4,6", "--train-count", "8", "--val-count", "4"};
const Words few{"--dim", "8", "--batch", "4", "--steps", "2", "--no-progress", "--out", "a"};

// The names of all gates in results.csv.
std::set<std::string> gates_of(const TemporaryFolder& folder) {
  std::istringstream lines(file(folder, "a/results.csv"));
  std::string line, cell;
  std::getline(lines, line);
  std::vector<std::string> names;
  for (std::istringstream cells(line); std::getline(cells, cell, ',');) names.push_back(cell);
  const auto column = std::ranges::find(names, "gate") - names.begin();
  REQUIRE(column < std::ssize(names));
  std::set<std::string> gates;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    for (std::ptrdiff_t i = 0; i <= column; ++i) std::getline(cells, cell, ',');
    gates.insert(cell);
  }
  return gates;
}

}  // namespace

TEST_CASE("each program is a function with --help") {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, Main>> programs{
      {"attention_maps", attention_maps}, {"merge", lab::merge}, {"replay", lab::replay}, {"report", lab::report}};
  for (const KnownStudy& study : known_studies()) programs.emplace_back(study.name, study.run);
  std::set<std::string> names, folders;
  for (const auto& [name, program] : programs) names.insert(name);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source_dir()) / "experiments"))
    if (const std::string name = entry.path().filename().string(); exists(entry.path() / (name + ".cpp")))
      folders.insert(name);
  CHECK(names == folders);  // a new study belongs in the list of experiments/studies.cpp
  for (const auto& [name, program] : programs)
    for (int twice = 0; twice < 2; ++twice) {
      INFO(name);
      const Ended help = call(folder.path(), program, {"--help"}, name);
      CHECK(help.status == 0);
      CHECK_THAT(help.out, contains(name));
      CHECK(call(folder.path(), program, {"--no-such-option"}, name).status == 2);
    }
}

// The sanitizers run this test, too, on the cpu and not on the emulated device.
TEST_CASE("the body of each experiment trains a small network") {
  for (const SmallStudy& study : small_studies) {
    INFO(study.name);
    const auto known = std::ranges::find(known_studies(), study.name, &KnownStudy::name);
    REQUIRE(known != known_studies().end());
    Words words{"--device", "cpu", "--batch", "4", "--no-progress", "--out", "a"};
    if (study.name != "detr") words = with(words, {"--eval-images", "8"});
    std::istringstream small(study.words);
    for (std::string word; small >> word;) words.push_back(word);
    const TemporaryFolder folder;
    const Ended ended = call(folder.path(), known->run, words, study.name);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    const std::string csv = file(folder, "a/results.csv");
    CHECK(lines_of(csv) == 1 + static_cast<int>(study.trials));
    CHECK_THAT(csv, contains(",ok,"));
  }
}

TEST_CASE("every ablation over gates accepts a custom gate with constants", "[long]") {
  register_prores();
  const std::vector<std::pair<std::string, Main>> ablations{
      {"depth_limit", depth_limit},       {"detr", detr},
      {"norm_placement", norm_placement}, {"residual_ratio", residual_ratio},
      {"stability_map", stability_map},   {"depth_stability", depth_stability}};
  for (const auto& [name, program] : ablations) {
    INFO(name);
    const TemporaryFolder folder;
    Words words = with(few, {"--gates", "pre,prores,prores:T=5.0,layerscale:init=1e-5"});
    if (name == "depth_limit") words = with(words, {"--first", "4", "--most", "4", "--no-stop-hopeless"});
    if (name == "detr") words = with(words, small_detr);
    if (name == "stability_map") words = with(words, {"--depths", "2", "--no-stop-hopeless"});
    if (name == "depth_stability") words = with(words, {"--depths", "2"});
    if (name == "residual_ratio") words = with(words, {"--depths", "2", "--warmup", "0"});
    if (name == "norm_placement") words = with(words, {"--depths", "2", "--warmups", "0"});
    const Ended ended = call(folder.path(), program, words, name);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    CHECK(gates_of(folder) == std::set<std::string>{"pre", "prores", "prores:T=5", "layerscale:init=1e-05"});
    CHECK_THAT(file(folder, "a/ledger.jsonl"), contains("\"gate\":\"prores:T=5\""));
    CHECK_THAT(file(folder, "a/report.html"), contains("prores:T=5"));
  }
}

TEST_CASE("methods with equal constants are one trial and wrong constants are named") {
  register_prores();
  const TemporaryFolder folder;
  const auto gates = [&](const std::string& names) {
    return call(folder.path(), depth_stability, with(few, {"--depths", "2", "--gates", names}), "depth_stability");
  };
  REQUIRE(gates("prores:T=4,fixup:scales=0:factor=0.5").status == 0);
  CHECK(gates_of(folder) == std::set<std::string>{"prores:T=4", "fixup:factor=0.5:scales=0"});
  const Ended again =
      call(folder.path(), depth_stability,
           with(few, {"--depths", "2", "--gates", "fixup:factor=0.50:scales=0,prores:T=4e0", "--resume"}),
           "depth_stability");
  CHECK(again.status == 0);  // these names denote the same trials
  const auto refused = [&](const std::string& names, const std::string& text) {
    const Ended ended = gates(names);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.err, contains(text));
  };
  refused("prores,prores:T=3", "--gates: prores is given twice");
  refused("prores:T=0.5", "--gates prores:T=0.5: [prores] expected T to be a number of at least 1, got 0.5");
  refused("prores:t=5", "[prores] expected a constant of the method (T), got \"t\"");
  refused("prores:T", "[gate] expected NAME:CONSTANT=VALUE, where VALUE is a number or by_depth, got \"T\"");
  refused("prors:T=5", "unknown method 'prors'; did you mean 'prores'?");
  const Ended list = call(folder.path(), depth_stability, {"--list-gates"}, "depth_stability");
  CHECK_THAT(list.out, contains("prores:T=3  divides every branch\n") &&
                           contains("mix_ln:post_share=0.25  share of the blocks") &&
                           contains("deepnorm:alpha=by_depth"));
  const TemporaryFolder judged;
  const Ended control =
      call(judged.path(), depth_stability,
           with(few, {"--depths", "2", "--gates", "pre,prores:T=5", "--control", "prores:T=5.0"}), "depth_stability");
  CHECK(control.status == 0);
  CHECK_THAT(control.out + file(judged, "a/report.html"), contains("prores:T=5"));
  const Ended outside = call(judged.path(), depth_stability, with(few, {"--gates", "pre,rezero", "--control", "post"}),
                             "depth_stability");
  CHECK(outside.status == 2);
  CHECK_THAT(outside.err, contains("--control post: the method is not among --gates pre,rezero, so nothing would be "
                                   "compared with it; add it to --gates, or name one of these methods"));
}

TEST_CASE("a network with a custom gate is trained, saved, loaded by another program and drawn") {
  register_prores();
  const TemporaryFolder folder;
  const Ended trained = call(
      folder.path(), lab::vit,
      with(few, {"--depth", "2", "--pool", "token", "--gate", "prores:T=5", "--warmup", "0", "--save-weights"}), "vit");
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  const std::string weights = "a/weights/seed-0.safetensors";
  CHECK(std::get<nn::ViTOptions>(nn::card_of(nn::read_safetensors(folder / weights), "w").options).method->text() ==
        "prores:T=5");
  const Ended drawn =
      call(folder.path(), attention_maps, {"--weights", weights, "--data", "glyphs", "--numbers", "0", "--out", "m"},
           "attention_maps");
  INFO(drawn.err);
  CHECK(drawn.status == 0);
  CHECK_THAT(drawn.err, contains("the model computes the same function as the file's network"));
}
