// Tests of studies that bring their own problem.
#include "experiments/lab/problem/problem.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/study/study.h"
#include "experiments/lab/train/trained_at.h"
#include "plumb/plumb.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::test;

namespace {

// A network must learn a fixed linear function. The loss is the mean squared error.
struct Line : Problem {
  static Tensor error(const nn::Layer& model, std::int64_t step) {
    const Tensor x = random_normal({4, 1, 8}, 1, fmt::format("x {}", step));
    return mean(pow(model(x) - x * 2, 2));
  }
  DataFacts facts() const override {
    return {.name = "line",
            .text = "a line",
            .hash = "1",
            .measures = {{.name = "train_loss", .title = "train MSE", .chance = 4.0},
                         {.name = "val_loss", .title = "val MSE", .chance = 4.0},
                         {.name = "val_score",
                          .title = "score",
                          .better = Better::higher,
                          .unit = Unit::fraction,
                          .resolution = 0.25}}};
  }
  std::unique_ptr<Task> task(const TaskSettings& settings, const nn::Layer& model) const override {
    return task_of([&](std::int64_t step) {
      if (settings.study.steps < 1) throw Error("the settings are gone");
      return error(model, step);
    });
  }
  Values evaluate(nn::Layer& model) const override {
    Values values{{"val_loss", error(model, -1).item()}, {"val_score", 0.99}};
    for (const auto& value : further) values.push_back(value);
    if (forgets_loss) values.erase(values.begin());
    return values;
  }
  Values further = {};
  bool forgets_loss = false;
};

// The loss stays less than 0.1 above `level`.
struct Flat : Line {
  Flat(double loss, std::optional<double> of_a_guess) : level(loss), chance(of_a_guess) {}
  DataFacts facts() const override {
    DataFacts facts = Line::facts();
    facts.measures.front().chance = chance;
    return facts;
  }
  std::unique_ptr<Task> task(const TaskSettings&, const nn::Layer& model) const override {
    return task_of([this, &model](std::int64_t step) { return error(model, step) * 1e-3 + level; });
  }
  double level;
  std::optional<double> chance;
};

// A Flat whose targets have an entropy: `entropy` at odd steps, and 0.25 less at even steps.
struct Soft : Flat {
  Soft(double loss, double of_a_guess, double entropy_) : Flat(loss, of_a_guess), entropy(entropy_) {}
  std::unique_ptr<Task> task(const TaskSettings& settings, const nn::Layer& model) const override {
    struct SoftTask : Task {
      std::function<Tensor()> loss_of(std::int64_t step) override {
        even = step % 2 == 0;
        return task->loss_of(step);
      }
      double target_entropy() const override { return even ? entropy - 0.25 : entropy; }
      std::unique_ptr<Task> task;
      double entropy = 0;
      bool even = false;
    };
    auto soft = std::make_unique<SoftTask>();
    soft->task = Flat::task(settings, model), soft->entropy = entropy;
    return soft;
  }
  double entropy;
};

template <class P = Line>
Ended trained(const TemporaryFolder& folder, const P& problem, const Words& words = {"--steps", "6"}) {
  return call(
      folder.path(),
      [&](int argc, const char* const* argv) {
        lab::Study study("lines", "Lines.");
        study.problem([&](const StudyOptions&) { return std::make_unique<P>(problem); });
        study.axis<int>("--depths", {1}, "Depths");
        return study.run(argc, argv, [&](lab::Trial& trial) {
          nn::Stack model({.dim = 8, .depth = 1, .method = "pre", .junctions = {nn::mlp({.hidden = 8})}});
          nn::initialize(model, trial.seed());
          trial.train(model);
          if (problem.facts().chance().known()) TrainedAt{}.measure(trial);
        });
      },
      with({"--batch", "4", "--no-progress", "--out", "a"}, words));
}

}  // namespace

TEST_CASE("a study of its own problem measures the values of the problem") {
  const TemporaryFolder folder;
  const Ended e = trained(folder, {});
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK_THAT(file(folder, "a/results.csv"), contains("val_loss,val_score"));
  CHECK_THAT(file(folder, "a/run.json"),
             contains("\"higher\"") && contains("train MSE") && contains("\"resolution\": 0.25"));
}

TEST_CASE("reports show the measures of a problem with their titles and units") {
  const TemporaryFolder folder;
  const Ended e = trained(folder, {});
  INFO(e.err);
  REQUIRE(e.status == 0);
  CHECK_THAT(e.out, contains("99.0 %") && contains("Saturated at depth 1: the best score is at least 97 %"));
  const std::string page = file(folder, "a/report.html");
  CHECK_THAT(page, contains("Against depth: score") && contains(">score, %</th>") && !contains("val_score</th>") &&
                       !contains("accuracy"));
}

TEST_CASE("a problem that measures an undescribed value or no val_loss is refused") {
  const TemporaryFolder folder;
  Line line;
  line.further = {{"val_other", 1}};
  const Ended other = trained(folder, line);
  CHECK(other.status == 1);
  CHECK_THAT(other.err, contains("[problem] expected evaluate() to return values that facts().measures describes, got "
                                 "\"val_other\": add it to facts().measures"));
  const TemporaryFolder second;
  line = {};
  line.forgets_loss = true;
  CHECK_THAT(trained(second, line).err,
             contains("[problem] expected evaluate() to return \"val_loss\", got 1 other values"));
}

TEST_CASE("measures that verdicts cannot use are refused before the first trial") {
  const auto said = [](const std::function<void(std::vector<Measure>&)>& change) {
    struct Changed : Line {
      explicit Changed(std::function<void(std::vector<Measure>&)> f) : change(std::move(f)) {}
      DataFacts facts() const override {
        DataFacts facts = Line::facts();
        change(facts.measures);
        return facts;
      }
      std::function<void(std::vector<Measure>&)> change;
    };
    const TemporaryFolder folder;
    const Ended e = call(folder.path(),
                         [&](int argc, const char* const* argv) {
                           lab::Study study("lines", "Lines.");
                           study.problem([&](const StudyOptions&) { return std::make_unique<Changed>(change); });
                           return study.run(argc, argv, [&](lab::Trial&) { throw Error("a trial ran"); });
                         },
                         {"--no-progress", "--out", "a"});
    CHECK(e.status != 0);
    return e.err;
  };
  using Measures = std::vector<Measure>;
  CHECK_THAT(said([](Measures& m) { m.push_back(m[0]); }), contains("got \"train_loss\" twice"));
  CHECK_THAT(said([](Measures& m) { m[2].name = ""; }), contains("got \"\" as a name"));
  CHECK_THAT(said([](Measures& m) { m[1].chance = 1 / 0.0; }), contains("expected a finite chance level of val_loss"));
  CHECK_THAT(said([](Measures& m) { m[0].chance = -1; }), contains("chance level of train_loss above 0, got -1"));
  CHECK_THAT(said([](Measures& m) { m.erase(m.begin() + 1); }),
             contains("expected facts().measures to describe val_loss, got only train_loss, val_score"));
}

TEST_CASE("the progress shows an accuracy that is no measure of the problem") {
  const TemporaryFolder folder;
  const Ended e =
      call(folder.path(),
           [](int argc, const char* const* argv) {
             lab::Study study("lines", "Lines.");
             study.problem([](const StudyOptions&) { return std::make_unique<Line>(); });
             return study.run(argc, argv, [](lab::Trial& trial) { trial.measure({{"test_accuracy", 0.5}}); });
           },
           {"--no-progress", "--out", "a"});
  CHECK(e.status == 0);
  CHECK_THAT(e.err, contains("test_accuracy 50.0 %"));
}

TEST_CASE("a study with its own problem has no options of images and keeps its warm-up") {
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) {
    lab::Study study("lines", "Lines.");
    study.options().least_steps = 2;
    study.options().warmup = 3;
    study.problem([](const StudyOptions&) { return std::make_unique<Line>(); });
    return study.run(argc, argv, [](lab::Trial& trial) { trial.measure({{"warmup", trial.warmup()}}); });
  };
  CHECK(call(folder.path(), main, {"--data", "glyphs", "--out", "a"}).status == 2);
  const Ended e = call(folder.path(), main, {"--no-progress", "--out", "a"});
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK_THAT(file(folder, "a/results.csv"), contains("warmup"));
  CHECK_THAT(e.out, contains("warmup") && contains(" 3 "));
}

TEST_CASE("the files of a problem without images name no images") {
  const TemporaryFolder folder;
  const Ended planned = trained(folder, {}, {"--steps", "6", "--dry-run"});
  CHECK_THAT(planned.out, contains("1 trial of 6 steps of 4 samples: 6 steps, 24 samples") && !contains("image"));
  const Ended e = trained(folder, {});
  INFO(e.err);
  REQUIRE(e.status == 0);
  for (const char* name : {"a/results.csv", "a/results.md", "a/metrics.jsonl"})
    CHECK_THAT(file(folder, name), !contains("image"));
  const std::string text = file(folder, "a/run.json");
  const auto run = nlohmann::ordered_json::parse(text);
  for (const char* key : {"image", "classes", "validation_images", "references"})
    CHECK_FALSE(run["data_facts"].contains(key));
  CHECK(StudyDescription::parse(text, "run.json").text() == text);
}

TEST_CASE("a study checks its options against the facts about its own problem") {
  const TemporaryFolder folder;
  const Ended e =
      call(folder.path(),
           [](int argc, const char* const* argv) {
             lab::Study study("lines", "Lines.");
             study.problem([](const StudyOptions&) { return std::make_unique<Line>(); });
             study.check([](const DataFacts& data) { throw UsageError("--batch does not suit " + data.text); });
             return study.run(argc, argv, [](lab::Trial&) { throw Error("a trial ran"); });
           },
           {"--no-progress", "--out", "a"});
  CHECK(e.status == 2);
  CHECK_THAT(e.err, contains("error: --batch does not suit a line\n"));
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_CASE("the chance level of a problem decides which trainings diverge") {
  const auto ended = [](double loss, std::optional<double> chance, const std::string& steps) {
    const TemporaryFolder folder;
    const Ended e = trained(folder, Flat(loss, chance), {"--steps", steps});
    INFO(e.err);
    CHECK(e.status == 0);
    const bool diverged = file(folder, "a/results.csv").find(",diverged,") != std::string::npos;
    CHECK(diverged == (e.err.find("diverged at step") != std::string::npos));
    return diverged ? e.err : "";
  };
  CHECK_THAT(ended(41, 4, "25"), contains("diverged at step 19: loss above 40, 10 times chance (4), for 20 steps"));
  CHECK(ended(41, 4, "19").empty());
  CHECK(ended(39, 4, "25").empty());
  CHECK_THAT(ended(41, 3, "25"), contains("loss above 30, 10 times chance (3), for 20 steps"));
  CHECK(ended(41, 5, "25").empty());
  CHECK(ended(41, std::nullopt, "25").empty());
}

TEST_CASE("the chance level of a problem decides which networks trained") {
  const auto said = [](double loss, std::optional<double> chance) {
    const TemporaryFolder folder;
    const Ended e = trained(folder, Flat(loss, chance));
    INFO(e.err);
    CHECK(e.status == 0);
    const std::string text = file(folder, "a/results.md");
    const bool near_chance = file(folder, "a/report.html").find("near chance") != std::string::npos;
    CHECK(near_chance == (text.find("near chance") != std::string::npos));
    return text;
  };
  const std::string at_chance = "no method trained; lines: stayed near chance (4)",
                    trained_to_4 = "lines trained, to a training loss of 4.0";
  CHECK_THAT(said(4, 4), contains(at_chance));
  CHECK_THAT(said(3.85, 4), contains(at_chance));  // at least 95 % of the level
  CHECK_THAT(said(4, 5), contains(trained_to_4) && !contains("near chance"));
  CHECK_THAT(said(4, std::nullopt), contains(trained_to_4) && !contains("near chance"));
}

TEST_CASE("losses above the entropy of the targets decide which networks trained and which are hopeless") {
  const auto said = [](double loss, double entropy, const Words& words) {
    const TemporaryFolder folder;
    const Ended e = trained(folder, Soft(loss, 4, entropy), words);
    INFO(e.err);
    CHECK(e.status == 0);
    return e.err + file(folder, "a/results.csv") + file(folder, "a/results.md");
  };
  // The entropy is 3.725 on average. 3.98 is 99.5 % of chance, but 93 % of the way from the entropy to chance.
  const Words stops{"--steps", "60", "--stop-hopeless"};
  const std::string learns = said(3.98, 3.85, stops);
  CHECK_THAT(learns, contains(",ok,60,") && contains("lines trained, to a training loss of 3.98") &&
                         !contains("near chance") && contains("target_entropy"));
  CHECK_THAT(said(3.98, 0.25, stops),
             contains(",hopeless,30,") && contains("stopped: loss 3.98") &&
                 contains("at least 98 % of the way from the entropy of the targets (0.125) to "
                          "chance (4)"));
  CHECK_THAT(said(3.98, 0.25, {"--steps", "30"}), contains("no method trained; lines: stayed near chance (4)"));
  // "trained" is 1 below half of the way: 3.8 is above half of chance, and 27 % of the way from 3.725 to 4.
  CHECK_THAT(said(3.8, 3.85, {"--steps", "30"}), contains("| 1.000 | 3.725 | 1 |"));
}

TEST_CASE("an entropy of targets that is not a number of at least 0 is refused") {
  const TemporaryFolder folder;
  const Ended e = trained(folder, Soft(3, 4, 0.1));
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("expected a target entropy that is finite and at least 0, got -0.15"));
}
