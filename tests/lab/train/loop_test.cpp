// Tests of training loops: one update in a step, its errors, its observers, the batches of images, loops that are
// resumed, and loops that end early.
#include "experiments/lab/train/loop.h"

#include <signal.h>

#include "experiments/vision/study.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"
#include "tests/support/text.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const Words loop_words{"--batch", "4", "--no-progress", "--out", "a", "--steps"};

// Runs a study of images with this body, in a new folder unless one is given.
Ended ran(const std::function<void(vision::Trial&)>& body, int steps = 6, const Words& more = {},
          const TemporaryFolder& folder = {}) {
  return call(
      folder.path(),
      [&](int argc, const char* const* argv) {
        return vision::Study("loop", "A loop.", {.network = false, .optimization = false}).run(argc, argv, body);
      },
      with(with(loop_words, {std::to_string(steps)}), more));
}

nn::ViTOptions small(const lab::Trial& trial) { return {.dim = 8, .depth = 1, .seed = trial.seed()}; }

// The loss of step 3 is not finite.
Tensor loss_of(const nn::ViT& model, const vision::Batch& batch, std::int64_t step) {
  const Tensor loss = cross_entropy(model(batch.images), batch.labels);
  return step == 3 ? log(loss * 0 - 1) : loss;
}

}  // namespace

TEST_CASE("minimise() takes a function or a tensor, with the same updates") {
  std::vector<double> losses[2];
  for (const bool of_function : {false, true}) {
    const Ended e = ran([&](vision::Trial& trial) {
      nn::ViT model(small(trial));
      nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
      for (vision::Step& step : trial.loop(model, optimizer)) {
        const vision::Batch& batch = step.batch();
        const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
        losses[of_function].push_back(of_function ? step.minimise(loss).loss() : step.minimise(loss()).loss());
      }
      CHECK(trial.traced("loss").size() == 6);
      CHECK(trial.traced("lr_now").size() == 6);
      CHECK(trial.traced("grad_norm").size() == 6);
      trial.measure(trial.evaluate());
    });
    INFO(e.err);
    CHECK(e.status == 0);
  }
  CHECK(losses[0].size() == 6);
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("a divergence of minimise() names the op of a function, and asks for one if it has a tensor") {
  for (const bool of_function : {false, true}) {
    std::int64_t last = -1;
    const Ended e = ran([&](vision::Trial& trial) {
      nn::ViT model(small(trial));
      nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
      for (vision::Step& step : trial.loop(model, optimizer)) {
        last = step.number();
        const auto loss = [&] { return loss_of(model, step.batch(), step.number()); };
        of_function ? step.minimise(loss) : step.minimise(loss());
      }
      CHECK(trial.has_diverged());
      for (const nn::Parameter& p : model.parameters())
        for (const double v : p.value.values()) CHECK(std::isfinite(v));
    });
    INFO(e.err);
    CHECK(e.status == 0);  // a divergence is a result
    CHECK(last == 3);
    CHECK_THAT(e.err, contains("diverged at step 3: ") &&
                          contains(of_function ? "[log]" : "op not known: pass a function that computes the loss"));
  }
}

TEST_CASE("minimise() is called once in a step, in a loop over a model") {
  const Ended twice = ran([&](vision::Trial& trial) {
    nn::ViT model(small(trial));
    nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
    for (vision::Step& step : trial.loop(model, optimizer))
      for (int i = 0; i < 2; ++i)
        step.minimise([&] { return cross_entropy(model(step.batch().images), step.batch().labels); });
  });
  CHECK(twice.status == 1);
  CHECK_THAT(twice.err, contains("[step] expected one call of minimise() in a step, got a second in step 0"));
  const Ended without = ran([&](vision::Trial& trial) {
    for (vision::Step& step : trial.loop()) step.minimise([] { return sum(variable(ones({1}))); });
  });
  CHECK(without.status == 1);
  CHECK_THAT(without.err, contains("[step] expected trial.loop(model, optimizer) for minimise(), got trial.loop()"));
}

TEST_CASE("a loop that is resumed ends with the weights of an uninterrupted loop") {
  const TemporaryFolder folder;
  std::int64_t stop_at = -1, first = -1;
  std::map<std::string, std::vector<double>> ends[2];
  const auto body = [&](vision::Trial& trial) {
    nn::ViTOptions o = small(trial);
    o.drop_path.rate = 0.5;
    nn::ViT model(o);
    nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
    nn::Ema ema(model, {.decay = 0.5});
    first = -1;
    const auto observe = [&](std::int64_t step) {
      if (first < 0) first = step;
      if (step == stop_at) interrupted_by(SIGINT);
    };
    for (vision::Step& step :
         trial.loop(model, optimizer, {.ema = &ema, .observer = {.before = observe}}, {.crop_padding = 4}))
      step.minimise([&] { return cross_entropy(model(step.batch().images), step.batch().labels); });
    for (const auto& [name, value] : nn::training_state(model, optimizer, &ema)) ends[first > 0][name] = value.values();
  };
  CHECK(ran(body).status == 0);
  stop_at = 3;
  CHECK(ran(body, 6, {}, folder).status == 130);
  stop_at = -1;
  const Ended resumed = ran(body, 6, {"--resume"}, folder);
  INFO(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(first == 4);
  CHECK(ends[1] == ends[0]);
}

TEST_CASE("a loop that is left by break counts its last step and saves its weights") {
  const auto left = [&](const auto& loop_of) {
    const TemporaryFolder folder;
    const Ended e = ran(
        [&](vision::Trial& trial) {
          nn::ViT model(small(trial));
          nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
          for (auto& step : loop_of(trial, model, optimizer)) {
            step.minimise([&] { return sum(model(ones({1, 3, 32, 32}))); });
            if (step.number() == 2) break;
          }
          CHECK(current_place().empty());  // the scope of the step has ended
          trial.log({{"updates", static_cast<double>(optimizer.steps_taken())}});
        },
        6, {"--save-weights"}, folder);
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK_THAT(read_file(folder / "a/results.csv"), contains("\n0,ok,3,") && contains(",3\n"));
    CHECK(std::filesystem::exists(folder / "a/weights/seed-0.safetensors"));
  };
  left([](vision::Trial& trial, auto& model, auto& optimizer) { return trial.loop(model, optimizer); });
  left([](lab::Trial& trial, auto& model, auto& optimizer) { return trial.loop(model, optimizer); });
}

TEST_CASE("observers are called before each step and after its update") {
  std::vector<std::string> seen;
  const Ended e = ran(
      [&](vision::Trial& trial) {
        nn::ViT model(small(trial));
        nn::Sgd optimizer(model.parameters(), {.lr = 1e-2});
        const lab::Observer observer{
            .before = [&](std::int64_t step) { seen.push_back(fmt::format("before {}", step)); },
            .after = [&](const Gradients& g) { seen.push_back(fmt::format("after {}", g.norm() > 0)); }};
        for (vision::Step& step : trial.loop(model, optimizer, {.observer = observer}))
          if (step.number() != 1)  // a step without an update
            step.minimise([&] { return cross_entropy(model(step.batch().images), step.batch().labels); });
      },
      3);
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK(seen == std::vector<std::string>{"before 0", "after true", "before 1", "before 2", "after true"});
}

TEST_CASE("a step has the same batch whether or not the body reads the batches before it") {
  std::vector<double> all, late;
  for (std::vector<double>* read : {&all, &late}) {
    const Ended e = ran([&](vision::Trial& trial) {
      for (vision::Step& step : trial.loop())
        if (read == &all || step.number() >= 3) read->push_back(sum(step.batch().images).item());
    });
    CHECK(e.status == 0);
  }
  REQUIRE(all.size() == 6);
  CHECK(late == std::vector<double>(all.begin() + 3, all.end()));
}
