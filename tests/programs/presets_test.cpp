// The tasks of the presets can rank methods: the kept ledgers of docs/results and docs/results/presets are above chance
// and not saturated.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/saturation.h"
#include "experiments/lab/stats/outcome.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

// A point of the control of each ledger.
const std::map<std::string, Point> controls{{"cait_table1", {{"gate", "pre"}}},
                                            {"cait_table1_1600_steps", {{"gate", "pre"}}},
                                            {"cait_table1-quick", {{"gate", "pre"}}},
                                            {"detr", {{"form", "none"}}},
                                            {"detr-quick", {{"form", "none"}}},
                                            {"drop_key", {{"rate", 0.0}}},
                                            {"fixup_scalars", {{"piece", "whole"}}},
                                            {"layerscale_init", {{"gate", "layerscale"}, {"epsilon", 1e-5}}},
                                            {"stochastic_depth", {{"drop_path", 0.0}}},
                                            {"class_attention-quick", {{"design", "token"}}},
                                            {"drop_key-quick", {{"rate", 0.0}}},
                                            {"fixup_scalars-quick", {{"piece", "whole"}}},
                                            {"layerscale_init-quick", {{"epsilon", 0.1}}},
                                            {"norm_placement", {{"gate", "pre"}}},
                                            {"norm_placement-quick", {{"gate", "pre"}}},
                                            {"residual_ratio-quick", {{"gate", "pre"}}},
                                            {"stochastic_depth-quick", {{"drop_path", 0.0}}},
                                            {"residual_ratio", {{"gate", "pre"}}},
                                            {"all_24", {{"gate", "pre"}}},
                                            {"readme", {{"gate", "pre"}}},
                                            {"readme_warmup", {{"gate", "pre"}}}};

// Kept ledgers that need not tell methods apart, with the reason.
const std::map<std::string, std::string> other_ledgers{
    {"cait_table1_lower_rate", "a check of cait_table1"},
    {"cait_table1_next_rate", "a check of cait_table1"},
    {"cait_table1_two_rates", "a check of cait_table1: pre-norm must fail at the higher rate"},
    {"fixup_scalars_half_rate", "a check of fixup_scalars"},
    {"fixup_scalars_new_seeds", "a check of fixup_scalars"},
    {"layerscale_init_next_rate", "a check of layerscale_init"},
    {"norm_placement_higher_rate", "a check of norm_placement"},
    {"norm_placement_shallow", "a check of norm_placement"},
    {"peri_ln", "a check of norm_placement"},
    {"readme_former", "replaced by readme"},
    {"step_times", "trials of 20 steps, which measure times"},
    {"stability_map", "a search: most of its trials must fail"},
};

}  // namespace

TEST_CASE("the tasks of the presets are above chance and not solved") {
  int presets = 0;
  const fs::path results = fs::path(test::source_dir()) / "docs/results";
  std::vector<fs::path> ledgers;
  for (const fs::path& folder : {results, results / "presets"})
    for (const auto& entry : fs::directory_iterator(folder)) ledgers.push_back(entry.path());
  for (const fs::path& path : ledgers)
    if (path.extension() == ".jsonl" && !other_ledgers.contains(path.stem().string())) {
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
        if (is_judged(e.record.point))
          trials.push_back({.point = e.record.point, .status = e.record.status, .values = e.record.values});
      REQUIRE(trials.size() >= 2);
      CHECK(saturation(trials, measures) == "");
      // Some arms and some seeds fail at chance: such a task can tell as well. Most are well above chance, and so are
      // most trials of the control, and all of a quick preset. A measure without a chance level, such as AP, has 0 at
      // chance, and 0.02 is well above.
      const auto above = [&](const TrialResult& t) {
        return t.value(score->name).value_or(0) > 2 * score->chance.value_or(0.01);
      };
      const auto control = controls.find(path.stem().string());
      REQUIRE(control != controls.end());  // add the ledger to one of the two lists
      int of_control = 0, above_of_control = 0;
      for (const TrialResult& t : trials)
        if (t.point.contains(control->second)) ++of_control, above_of_control += above(t);
      CHECK(2 * above_of_control > of_control);
      if (path.parent_path() == results / "presets") CHECK(above_of_control == of_control);
      CHECK(2 * std::ranges::count_if(trials, above) > std::ssize(trials));
    }
  CHECK(presets >= 19);
}

TEST_CASE("the ledgers of the quick presets have the settings that the presets have now") {
  using Json = nlohmann::json;
  const TemporaryFolder folder;
  int presets = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(test::source_dir()) / "docs/results/presets"))
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
      Json now = Json::parse(f.out, nullptr, true, true), then = kept.settings.json;  // the text has comments
      for (const char* of_the_call : {"jobs", "at_lr", "out", "until_decided"})
        now.erase(of_the_call), then.erase(of_the_call);
      CHECK(now == then);
    }
  CHECK(presets >= 9);
}
