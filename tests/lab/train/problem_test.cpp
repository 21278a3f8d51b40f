// Tests of studies that bring their own problem.
#include "experiments/lab/problem/problem.h"

#include "autograd/autograd.h"
#include "experiments/lab/study/study.h"
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

Ended trained(const TemporaryFolder& folder, const Line& line) {
  return call(folder.path(),
              [&](int argc, const char* const* argv) {
                Study study("lines", "Lines.");
                study.problem([&](const StudyOptions&) { return std::make_unique<Line>(line); });
                study.axis<int>("--depths", {1}, "Depths");
                return study.run(argc, argv, [&](Trial& trial) {
                  nn::Stack model({.dim = 8, .depth = 1, .gate = "pre", .junctions = {nn::mlp({.hidden = 8})}});
                  nn::initialize(model, trial.seed());
                  trial.train(model);
                });
              },
              {"--batch", "4", "--steps", "6", "--no-progress", "--out", "a"});
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
                           Study study("lines", "Lines.");
                           study.problem([&](const StudyOptions&) { return std::make_unique<Changed>(change); });
                           return study.run(argc, argv, [&](Trial&) { throw Error("a trial ran"); });
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
  const Ended e = call(folder.path(),
                       [](int argc, const char* const* argv) {
                         Study study("lines", "Lines.");
                         study.problem([](const StudyOptions&) { return std::make_unique<Line>(); });
                         return study.run(argc, argv, [](Trial& trial) { trial.measure({{"test_accuracy", 0.5}}); });
                       },
                       {"--no-progress", "--out", "a"});
  CHECK(e.status == 0);
  CHECK_THAT(e.err, contains("test_accuracy 50.0 %"));
}

TEST_CASE("a study with its own problem has no options of images and keeps its warm-up") {
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) {
    Study study("lines", "Lines.");
    study.takes({.least_steps = 2});
    study.options().warmup = 3;
    study.problem([](const StudyOptions&) { return std::make_unique<Line>(); });
    return study.run(argc, argv, [](Trial& trial) { trial.measure({{"warmup", trial.warmup()}}); });
  };
  CHECK(call(folder.path(), main, {"--data", "glyphs", "--out", "a"}).status == 2);
  const Ended e = call(folder.path(), main, {"--no-progress", "--out", "a"});
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK_THAT(file(folder, "a/results.csv"), contains("warmup"));
  CHECK_THAT(e.out, contains("warmup") && contains(" 3 "));
}
