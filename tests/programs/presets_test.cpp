// The tasks of the quick presets can rank methods: the kept ledgers of docs/results/presets are above chance and not
// saturated.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/saturation.h"
#include "experiments/lab/study/own_rates.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

// A point of the control of each preset.
const std::map<std::string, Point> controls{{"cait_table1-quick", {{"gate", "pre"}}},
                                            {"class_attention-quick", {{"design", "token"}}},
                                            {"drop_key-quick", {{"rate", 0.0}}},
                                            {"fixup_scalars-quick", {{"piece", "whole"}}},
                                            {"layerscale_init-quick", {{"epsilon", 0.1}}},
                                            {"norm_placement-quick", {{"gate", "pre"}}},
                                            {"residual_ratio-quick", {{"gate", "pre"}}},
                                            {"stochastic_depth-quick", {{"drop_path", 0.0}}},
                                            {"readme", {{"gate", "pre"}}}};

}  // namespace

TEST_CASE("the tasks of the quick presets are above chance and not solved") {
  int presets = 0;
  const fs::path results = fs::path(PLUMB_SOURCE_DIR) / "docs/results";
  std::vector<fs::path> ledgers{results / "readme.jsonl"};
  for (const auto& entry : fs::directory_iterator(results / "presets")) ledgers.push_back(entry.path());
  for (const fs::path& path : ledgers)
    if (path.extension() == ".jsonl") {
      INFO(path);
      ++presets;
      const Ledger ledger(path);
      CHECK(ledger.damaged().empty());
      const fs::path file = fs::path(path).replace_extension(".json");
      const std::vector<Measure> measures = StudyDescription::parse(read_file(file), file.string()).facts.data.measures;
      const Measure* score = score_of(measures);
      REQUIRE(score);
      std::vector<TrialResult> trials;
      for (const LedgerEntry& e : ledger.entries())
        if (!is_of_search(e.record.point))
          trials.push_back({.point = e.record.point, .status = e.record.status, .values = e.record.values});
      REQUIRE(trials.size() >= 2);
      CHECK(saturation(trials, measures) == "");
      // Some arms fail at chance: such a task can tell as well. The control and most arms are well above chance.
      const auto above = [&](const TrialResult& t) {
        return t.value(score->name).value_or(0) > 2 * score->chance.value();
      };
      const Point& control = controls.at(path.stem().string());
      int controls_seen = 0;  // at each depth and with each seed
      for (const TrialResult& t : trials)
        if (t.point.contains(control)) {
          ++controls_seen;
          CHECK(above(t));
        }
      CHECK(controls_seen > 0);
      CHECK(2 * std::ranges::count_if(trials, above) > std::ssize(trials));
    }
  CHECK(presets >= 9);
}

TEST_CASE("the ledgers of the quick presets have the settings that the presets have now") {
  using Json = nlohmann::json;
  const TemporaryFolder folder;
  int presets = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(PLUMB_SOURCE_DIR) / "docs/results/presets"))
    if (entry.path().extension() == ".json") {
      INFO(entry.path());
      ++presets;
      const StudyDescription kept = StudyDescription::parse(read_file(entry.path()), entry.path().string());
      const std::string words = kept.command_line, option = "--preset ";
      REQUIRE_THAT(words, contains(option));
      const auto from = words.find(option) + option.size();
      const Finished f = run(folder.path(), program(kept.program) + " " + option +
                                                words.substr(from, words.find(' ', from) - from) + " --print-config");
      REQUIRE(f.status == 0);
      Json now = Json::parse(f.out, nullptr, true, true), then = Json::parse(kept.settings);  // the text has comments
      for (const char* of_the_call : {"jobs", "at_lr", "out"}) now.erase(of_the_call), then.erase(of_the_call);
      CHECK(now == then);
    }
  CHECK(presets >= 8);
}
