// Tests of axes: their values, the conditions that they make, and the claims that use conditions.
#include "experiments/lab/study/axis.h"

#include <set>

#include "experiments/lab/study/study.h"
#include "experiments/vision/study.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;

namespace {

enum class Drop { none, dropout, drop_key };
constexpr auto names_of(Drop) { return std::array{"none", "dropout", "drop_key"}; }

// A study whose body returns a number that depends on its axes.
struct DropStudy {
  std::set<std::string> points = {};
  std::function<void(lab::Study&, const lab::Axis<Drop>&, const lab::Axis<double>&)> declare = {};

  int operator()(int argc, const char* const* argv) {
    vision::Study study("drops", "Drops.", {.network = false, .optimization = false});
    const auto drop = study.axis<Drop>("--drops", "Drops in attention");
    const auto rate = study.axis("--rates", {0.1, 0.3}, "Rates").above(0).below(1);
    study.only([&](const lab::Point& p) { return p[drop] != Drop::none || p.contains(rate == rate.values().front()); });
    if (declare) declare(study, drop, rate);
    return study.run(argc, argv, [&](lab::Trial& trial) {
      points.insert(trial.point().without("seed").label());
      trial.measure({{"score", trial[drop] == Drop::drop_key ? trial[rate] : 0.0}});
    });
  }
};

const Words few{"--steps", "1", "--no-progress", "--seeds", "0..5", "--out", "a"};

}  // namespace

TEST_CASE("an axis over an enum has all names, 'all', and the nearest name in errors") {
  const TemporaryFolder folder;
  DropStudy study;
  const Ended all = call(folder.path(), std::ref(study), few);
  INFO(all.err);
  REQUIRE(all.status == 0);
  CHECK(study.points == std::set<std::string>{"none rate 0.1", "dropout rate 0.1", "dropout rate 0.3",
                                              "drop_key rate 0.1", "drop_key rate 0.3"});
  study.points.clear();
  CHECK(call(folder.path(), std::ref(study), with({"--drops", "drop_key", "--rates", "0.3", "--overwrite"}, few))
            .status == 0);
  CHECK(study.points == std::set<std::string>{"drop_key rate 0.3"});
  CHECK(call(folder.path(), std::ref(study), with({"--drops", "all", "--overwrite"}, few)).status == 0);
  const Ended wrong = call(folder.path(), std::ref(study), with({"--drops", "drop_kye", "--overwrite"}, few));
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("--drops: unknown drop 'drop_kye'; did you mean 'drop_key'?"));
}

TEST_CASE("claims by values are judged, and values that a call leaves out are not") {
  const TemporaryFolder folder;
  DropStudy study{.declare = [](lab::Study& s, const lab::Axis<Drop>& drop, const lab::Axis<double>& rate) {
    s.claim("keys score higher", "a test",
            higher("score", drop == Drop::drop_key, drop == Drop::dropout).at(rate == 0.1 + 0.2));
    s.claim("keys score higher at 0.5", "a test",
            higher("score", drop == Drop::drop_key, drop == Drop::dropout).at(rate == 0.5));
    s.claim("keys are above 0.2", "a test", above("score", 0.2, drop == Drop::drop_key && rate == 0.3));
  }};
  const Ended e = call(folder.path(), std::ref(study), few);
  INFO(e.err << e.out);
  REQUIRE(e.status == 0);
  CHECK_THAT(e.err,
             contains("1 claim not judged in this call: keys score higher at 0.5: no rate 0.5 in --rates 0.1,0.3"));
  CHECK_THAT(read_file(folder / "a/claims.csv"),
             contains("keys score higher,a test,") && contains("keys are above 0.2,a test,"));
}

TEST_CASE("conditions are refused if the axis cannot have the value") {
  vision::Study study("axes", "Axes.");
  const auto epsilon = study.axis("--epsilons", {0.0, 1e-6}, "Initial values").at_least(0).below(10);
  const auto size = study.axis<int>("--sizes", {1, 2}, "Sizes").at_least(1);
  const auto kind = study.axis("--kinds", {"plain", "block"}, "Kinds").one_of("kind", {"plain", "block"});
  const auto gate = study.methods({"pre", "layerscale"});
  CHECK(error_of([&] { (void)(epsilon == -1); }) ==
        "[axis] --epsilons expects numbers in [0, 10) such as 0.001,0.01, got -1");
  CHECK(error_of([&] { (void)(epsilon == 10); }) ==
        "[axis] --epsilons expects numbers in [0, 10) such as 0.001,0.01, got 10");
  CHECK_THAT(error_of([&] { (void)(size == 0); }), contains("--sizes expects integers of at least 1"));
  CHECK(error_of([&] { (void)(kind == "blok"); }) == "[axis] --kinds: unknown kind 'blok'; did you mean 'block'?");
  CHECK(error_of([&] { (void)(gate == "layerscal"); }) ==
        "[axis] --gates: unknown method 'layerscal'; did you mean 'layerscale'?");
  CHECK((epsilon == 1e-6).label() == "epsilon 1e-06");
  CHECK((gate == "layerscale:init=1e-5").label() == "layerscale:init=1e-05");  // as the option stores a method
  CHECK((gate == "pre" && size == 2) == lab::Point{{"gate", "pre"}, {"size", std::int64_t{2}}});
  CHECK(error_of([&] { (void)(size == 1 && gate == "pre" && size == 2); }) ==
        "[point] expected one value on the axis size in a condition, got 1 and 2");
}

TEST_CASE("numbers are equal if both print alike with six digits") {
  CHECK(lab::same(0.1 + 0.2, 0.3));
  CHECK(lab::same(1e-6, 1.0000001e-6));
  CHECK_FALSE(lab::same(1e-6, 1.00001e-6));
  CHECK_FALSE(lab::same(1e-6, 0.0));
  CHECK_FALSE(lab::same(0.999999, 1.0));
  CHECK(lab::same(0.9999999, 1.0));
  CHECK(lab::same(std::int64_t{3}, 3.0));
  CHECK_FALSE(lab::same(std::int64_t{3}, 3.0000001));
  CHECK_FALSE(lab::same(std::int64_t{1'000'000'001}, std::int64_t{1'000'000'000}));
  const TemporaryFolder folder;
  DropStudy study;
  const Ended twice = call(folder.path(), std::ref(study), with({"--rates", "0.3,0.30000001"}, few));
  CHECK(twice.status == 2);
  CHECK_THAT(twice.err, contains("--rates: 0.30000001 is given twice"));
}

TEST_CASE("a study sets defaults, and the command line overrides them") {
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) {
    vision::Study study("defaults", "Defaults.");
    study.defaults({.steps = 70,
                    .warmup = 2,
                    .batch = 5,
                    .lr = 3e-3,
                    .weight_decay = 0.5,
                    .clip_norm = 2,
                    .loss_limit = 4,
                    .seeds = {1, 3},
                    .stop_hopeless = true});
    return study.run(argc, argv, [](lab::Trial&) {});
  };
  const Ended printed = call(folder.path(), main, {"--print-config"});
  INFO(printed.err);
  const std::string& all = printed.out;
  for (const char* setting :
       {"\"steps\": 70", "\"warmup\": 2", "\"batch\": 5", "\"lr\": 0.003", "\"weight_decay\": 0.5",
        "\"clip_norm\": 2.0", "\"loss_limit\": 4.0", "\"seeds\": [1, 3]"})
    CHECK_THAT(all, contains(setting));
  CHECK_THAT(call(folder.path(), main, {"--print-config", "--steps", "90"}).out, contains("\"steps\": 90"));
  CHECK_THAT(call(folder.path(), main, {"--print-config", "--steps", "30"}).err,
             contains("--stop-hopeless (on by default) needs 20 steps"));
}

TEST_CASE("measure_layers() needs a model with a stack of blocks") {
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) {
    vision::Study study("flat", "Flat.");
    study.measure_layers();
    return study.run(argc, argv, [](lab::Trial& trial) {
      struct Flat : nn::Layer {
        nn::Child<nn::Linear> head{this, "head", {.in = 3, .out = 10}};
        Tensor forward(const Tensor& x) const override { return head(mean(x, {2, 3})); }
      } model;
      nn::initialize(model, trial.seed());
      trial.train(model);
    });
  };
  const Ended e = call(folder.path(), main, few);
  CHECK(e.status == 1);
  CHECK_THAT(e.err,
             contains("[layers] expected a model with an nn::Stack of blocks, whose layers are measured, got Flat"));
}
