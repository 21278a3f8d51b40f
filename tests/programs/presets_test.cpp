// The tasks of the quick presets can rank methods: the kept ledgers of docs/results/presets are above chance and not
// saturated.
#include <algorithm>
#include <filesystem>
#include <map>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/saturation.h"
#include "experiments/lab/study/own_rates.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
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
      const auto classes =
          static_cast<double>(StudyDescription::parse(read_file(file), file.string()).facts.data.image_sizes().classes);
      std::vector<TrialResult> trials;
      for (const LedgerEntry& e : ledger.entries())
        if (!is_of_search(e.record.point))
          trials.push_back({.point = e.record.point, .status = e.record.status, .values = e.record.values});
      REQUIRE(trials.size() >= 2);
      CHECK(saturation(trials, measures_of_classification(0)) == "");
      // Some arms fail at chance: such a task can tell as well. The control and most arms are well above chance.
      const auto above = [&](const TrialResult& t) { return t.value("val_accuracy").value_or(0) > 2 / classes; };
      const auto control = std::ranges::find_if(
          trials, [&](const TrialResult& t) { return t.point.contains(controls.at(path.stem().string())); });
      REQUIRE(control != trials.end());
      CHECK(above(*control));
      CHECK(2 * std::ranges::count_if(trials, above) > std::ssize(trials));
    }
  CHECK(presets >= 9);
}
