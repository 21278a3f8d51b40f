// Compares the columns that docs/files.md documents with the columns in the files that studies write.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/layers.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/vision/study.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

using Columns = std::map<std::string, std::set<std::string>>;  // each file with its columns

// The columns that docs/files.md documents. A column is the first cell of a table row "| `name` | meaning |" below the
// heading of its file. The files with a row "| the columns of [comparisons]" share the columns below "Comparisons".
Columns documented() {
  Columns columns;
  std::set<std::string> sharing;
  std::ifstream page(fs::path(test::source_dir()) / "docs/files.md");
  std::string line, heading;
  while (std::getline(page, line)) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (line.starts_with("| the columns of [comparisons]")) sharing.insert(heading);
    if (line.starts_with("| `") && heading != "Others") columns[heading].insert(line.substr(3, line.find('`', 3) - 3));
  }
  const auto shared = columns.extract("Comparisons");
  for (const std::string& file : sharing) columns[file].insert(shared.mapped().begin(), shared.mapped().end());
  return columns;
}

// The name under which docs/files.md documents a column: <axis> for an axis, and <value> for a value that only these
// studies have.
std::string general(const std::string& name) {
  if (name == "gate" || name == "size") return "<axis>";
  if (name.starts_with("steps_to_")) return "steps_to_<loss>";
  return name == "own" ? "<value>" : name;
}

void read_csv(Columns& columns, const std::string& file, const fs::path& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  std::string header;
  std::getline(in, header);
  std::istringstream cells(header);
  for (std::string cell; std::getline(cells, cell, ',');) columns[file].insert(general(cell));
}

// Adds the columns of the files in a study folder. `depth_and_rate_are_axes` says whether depth and learning rate are
// axes of the study. Comparisons and maps have depth and learning rate as separate columns.
void read_folder(Columns& columns, const fs::path& folder, bool depth_and_rate_are_axes) {
  Columns found;
  for (const char* name : {"results.csv", "claims.csv", "comparisons.csv", "rates.csv", "layers.csv"})
    if (fs::exists(folder / name)) read_csv(found, name, folder / name);
  std::error_code no_figures;
  for (const auto& entry : fs::directory_iterator(folder / "figures", no_figures))
    if (entry.path().extension() == ".csv") read_csv(found, "figures/*.csv", entry.path());
  std::ifstream lines(folder / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    for (const auto& [name, value] : object.items()) found["metrics.jsonl"].insert(general(name));
  }
  if (depth_and_rate_are_axes)
    for (const char* name : {"results.csv", "layers.csv", "metrics.jsonl"})
      for (const char* axis : {"depth", "lr"})
        if (found[name].erase(axis)) found[name].insert("<axis>");
  for (const auto& [name, some] : found) columns[name].insert(some.begin(), some.end());
}

}  // namespace

TEST_CASE("docs/files.md documents the columns of the files and no others") {
  const TemporaryFolder folder;
  Columns columns;
  const auto study = [](int argc, const char* const* argv) {
    vision::Study s("files", "Files.");
    s.axis<std::string>("--gates", {"pre", "rezero"}, "Gates");
    s.axis<int>("--depths", {1, 2}, "Depths");
    s.axis<double>("--lrs", {1e-3, 3e-3}, "Rates");
    s.judging().control = "pre";
    s.steps_to(2.5);
    s.claim("a claim", "a test", lower("train_loss", {{"gate", "rezero"}}, {{"gate", "pre"}}).at({{"depth", 1}}));
    s.output("layers.csv", layers_csv);
    s.output([](const StudyResults& r) {
      return Section{
          .title = "Dots",
          .charts = {dots_of(r, "val_accuracy", "Dots"), plot_of(r, {.value = "val_accuracy", .axis = "depth"})}};
    });
    return s.run(argc, argv, [](lab::Trial& trial) {
      if (trial.point().contains({{"gate", "rezero"}, {"depth", 2}, {"lr", 3e-3}, {"seed", 1}})) {
        trial.trace({{"loss", 2}});
        return trial.mark_diverged(1, "for a test");
      }
      if (trial.point().contains({{"gate", "rezero"}, {"depth", 1}, {"lr", 3e-3}, {"seed", 1}}))
        throw Error("for a test");
      nn::ViT model(vision::vit(trial));
      trial.train(model, record_layers(trial, model));
    });
  };
  const Ended e = call(folder.path(), study,
                       {"--dim", "8", "--batch", "4", "--steps", "3", "--seeds", "0..1", "--eval-every", "2",
                        "--eval-images", "20", "--label-smoothing", "0.1", "--no-progress", "--out", "a"});
  INFO(e.err);
  REQUIRE(e.status == 1);  // status 1, because one trial failed
  read_folder(columns, folder / "a", true);
  // A study with a custom training loop and the axis steps.
  const auto loop = [](int argc, const char* const* argv) {
    vision::Study s("loop", "Loop.", {.network = false, .optimization = false});
    s.axis<int>("--steps", {2, 3}, "Steps").named("steps");
    s.axis<int>("--sizes", {1}, "Sizes");
    return s.run(argc, argv, [](lab::Trial& trial) {
      for ([[maybe_unused]] lab::Step& step : trial.loop()) trial.log({{"loss", 1}, {"lr", 1e-3}, {"own", 1}});
    });
  };
  REQUIRE(call(folder.path(), loop, {"--no-progress", "--out", "b"}).status == 0);
  read_folder(columns, folder / "b", false);
  // A study in which each method trains at its own learning rate.
  const auto own_rates = [](int argc, const char* const* argv) {
    vision::Study s("own", "Own rates.", {.network = false});
    s.axis<std::string>("--gates", {"pre", "rezero"}, "Gates");
    s.claim("a claim", "a test", lower("train_loss", {{"gate", "rezero"}}, {{"gate", "pre"}}));
    return s.run(argc, argv, [](lab::Trial& trial) {
      trial.measure({{"train_loss", trial.point().get<double>("lr")}, {"val_loss", 1}, {"val_accuracy", 1}});
    });
  };
  REQUIRE(call(folder.path(), own_rates, {"--no-progress", "--seeds", "0..3", "--out", "c"}).status == 0);
  read_folder(columns, folder / "c", true);
  for (auto& [file, names] : columns)
    if (names.erase("steps") && file == "metrics.jsonl") names.insert("<axis>");
  columns["results.csv"].insert("steps");  // a column in the first study, but an axis in the second study
  // Only the custom loop measures the values "loss" and "lr".
  columns["results.csv"].erase("loss"), columns["results.csv"].erase("lr");
  const Columns said = documented();
  for (const auto& [file, names] : columns) {
    INFO(file);
    REQUIRE(said.contains(file));
    CHECK(names == said.at(file));
  }
  CHECK(said.size() == columns.size());
}

TEST_CASE("run.json has the claims of a study, and the number of images of an evaluation") {
  const TemporaryFolder folder;
  const auto study = [](int argc, const char* const* argv) {
    vision::Study s("planned", "Planned.");
    s.claim("a planned claim", "a test", below("train_loss", 100, {{"seed", 3}}));
    return s.run(argc, argv, [](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 1}));
      trial.train(model);
    });
  };
  const auto run_with = [&](const std::string& eval_images) {
    const Ended e = call(folder.path(), study,
                         {"--dim", "8", "--batch", "4", "--steps", "1", "--seeds", "3..4", "--eval-images", eval_images,
                          "--no-progress", "--out", eval_images});
    INFO(e.err);
    REQUIRE(e.status == 0);
    std::ifstream file(folder / (eval_images + "/run.json"));
    return nlohmann::json::parse(file);
  };
  const auto few = run_with("20"), all = run_with("0"), many = run_with("1000000");
  CHECK(few["claims"] == std::vector<std::string>{"a planned claim [constant 100]"});
  CHECK(few["data_facts"]["validation_images"] == 20);
  CHECK(all["data_facts"]["validation_images"] > 20);
  CHECK(many["data_facts"]["validation_images"] == all["data_facts"]["validation_images"]);
}
