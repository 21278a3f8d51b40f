// Tests of run.json: the facts about data.
#include "experiments/lab/record/study_description.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;

namespace {

StudyDescription study_of(DataFacts data) {
  StudyDescription run{.experiment = "waves", .settings = {{{"steps", 7}}}, .fixed = {"steps"}, .rule = "bets"};
  run.facts = {.machine = {.device = "a device", .threads = 2}, .data = std::move(data), .code = "c0de"};
  return run;
}

DataFacts waves() {
  return {.name = "waves",
          .text = "waves, new inputs in each step",
          .hash = "1",
          .measures = {{.name = "train_loss", .title = "train MSE", .chance = 4}}};
}

DataFacts pictures() {
  return {.name = "pictures",
          .text = "pictures; 3 classes",
          .validation_is = "the published test set",
          .hash = "2",
          .samples = "images",
          .note = "images are enlarged",
          .further = R"({"validation_images":40,"image":[1,8,9],"classes":3})",
          .measures = {{.name = "train_loss", .title = "train loss"}},
          .references = {{.value = "val_accuracy",
                          .level = 0.625,
                          .name = "a linear model",
                          .better = Better::higher,
                          .baseline = true}}};
}

// The keys of data_facts, in order.
std::vector<std::string> keys_of(const StudyDescription& run) {
  const nlohmann::ordered_json facts = nlohmann::ordered_json::parse(run.text())["data_facts"];
  std::vector<std::string> keys;
  for (const auto& [key, value] : facts.items()) keys.push_back(key);
  return keys;
}

}  // namespace

TEST_CASE("run.json keeps the further facts and the baselines of a problem") {
  CHECK(keys_of(study_of(waves())) == std::vector<std::string>{"name", "validation_is", "hash", "measures"});
  CHECK(keys_of(study_of(pictures())) == std::vector<std::string>{"name", "validation_is", "hash", "validation_images",
                                                                  "image", "classes", "measures", "references"});
  for (const StudyDescription& run : {study_of(waves()), study_of(pictures())}) {
    const StudyDescription read = StudyDescription::parse(run.text(), "run.json");
    CHECK(read.text() == run.text());
    CHECK(read.facts.data.further == run.facts.data.further);
  }
  StudyDescription old = study_of(waves());
  old.rule.clear();
  CHECK_THAT(old.text(), !contains("rule"));
  CHECK(StudyDescription::parse(old.text(), "run.json").rule.empty());
  const DataFacts read = StudyDescription::parse(study_of(pictures()).text(), "run.json").facts.data;
  REQUIRE(read.references.size() == 1);
  CHECK((read.references[0].level == 0.625 && read.references[0].better == Better::higher));
}

TEST_CASE("further facts of a problem must be an object without the names that run.json has") {
  DataFacts facts = waves();
  check_further(facts);
  facts.further = R"({"waves":3})";
  check_further(facts);
  facts.further = R"({"hash":"x"})";
  CHECK(error_of([&] { check_further(facts); }) ==
        "[problem] expected facts().further without the name \"hash\", which run.json has");
  for (const char* wrong : {"[1]", "{", "3"}) {
    facts.further = wrong;
    CHECK(error_of([&] { check_further(facts); }) ==
          std::string("[problem] expected facts().further to be the text of a JSON object, got ") + wrong);
  }
}

TEST_CASE("run.json keeps the value that chooses learning rates") {
  StudyDescription run = study_of(pictures());
  CHECK_THAT(run.text(), !contains("rates_by"));
  run.facts.rates_by = {"val_accuracy", Better::higher};
  const StudyDescription read = StudyDescription::parse(run.text(), "run.json");
  CHECK(read.facts.rates_by == run.facts.rates_by);
  CHECK(read.text() == run.text());
}

TEST_CASE("the kept descriptions of studies keep their bytes, but for the looks of old ones") {
  int files = 0, without_images = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(test::source_dir()) / "docs/results")) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path().string());
    const std::string text = read_file(entry.path());
    const StudyDescription run = StudyDescription::parse(text, entry.path().string());
    without_images += run.facts.data.further.empty();
    CHECK(run.facts.data.chance().known());
    ++files;
    nlohmann::ordered_json kept = nlohmann::ordered_json::parse(text);
    CHECK((kept.erase("looks") == 1) == run.rule.empty());
    CHECK(run.text() == kept.dump(2) + "\n");
  }
  CHECK(files >= 30);
  CHECK(without_images >= 2);  // the detector's
}

TEST_CASE("texts of run.json are printable, and the settings stay as they are") {
  StudyDescription run = study_of(waves());
  run.command_line = "a \x1b[31m\n\x7f\xc2\x9b \xc3\xa9", run.settings = {{{"steps", 7}, {"data_dir", "a\nb"}}};
  const StudyDescription read = StudyDescription::parse(run.text(), "run.json");
  CHECK(read.command_line == "a \\x1b[31m\\x0a\\x7f\\x9b \xc3\xa9");
  CHECK(read.settings == run.settings);
}
