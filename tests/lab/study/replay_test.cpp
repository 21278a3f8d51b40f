// Tests of --replay, which repeats the end of a diverged trial in f32 and f64.
#include "experiments/vision/study.h"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "plumb/plumb.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("replay distinguishes a number format that is too narrow from an unstable training") {
  const TemporaryFolder folder;
  // The forward pass computes exp(100 a), which overflows in f32, and divides the result by itself.
  struct Overflowing : nn::Layer {
    nn::Child<nn::Linear> linear{this, "linear", {.in = 3 * 32 * 32, .out = 10}};
    Tensor a = parameter("a", zeros({1}), Role::gate);
    Tensor forward(const Tensor& x) const override {
      const Tensor logits = linear(reshape(x, {x.dim(0), x.numel() / x.dim(0)}));
      return logits * 0.01 + exp(a * 100) / exp(a * 100);
    }
  };
  int stop_at = -1;
  const auto main = [&](int argc, const char* const* argv) {
    return vision::Study("overflow", "Overflow.", {.network = false, .optimization = false})
        .run(argc, argv, [&](vision::Trial& trial) {
          Overflowing model;
          nn::initialize(model, trial.seed());
          // The gradients of `a` cancel. The loop adds 0.05 to `a` in each step, so exp(100 a) overflows in step 18.
          nn::Sgd optimizer(model.parameters(), {.lr = 1e-3});
          trial.track(model, optimizer);
          for (vision::Step& step : trial.loop()) {
            const vision::Batch& batch = step.batch();
            const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
            const Gradients g = backward(loss());
            if (trial.check_divergence(g, loss)) return;
            optimizer.step(g);
            if (optimizer.steps_taken() - 1 == stop_at) interrupted_by(SIGINT);
            for (nn::Parameter& p : model.parameters())
              if (p.name == "a") nn::assign({{"a", p.value}}, {{"a", p.value.detach() + 0.05}}, "test");
          }
        });
  };
  const Words words{"--batch", "4", "--steps", "60", "--no-progress", "--out", "a"};
  const Ended run = call(folder.path(), main, words);
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(run.err, contains("diverged at step 18: ") && contains("exp"));
  const Ended replayed = call(folder.path(), main, with(words, {"--replay", "seed 0"}));
  INFO(replayed.out << replayed.err);
  CHECK(replayed.status == 0);
  CHECK_THAT(replayed.out, contains("seed 0: recorded as diverged at step 18") &&
                               contains("fp32 from step 0: diverged at step 18: ") && contains("exp") &&
                               contains("Overflowing") && contains("f64 from step 8: no divergence up to step 38") &&
                               contains("\nnumerical: "));
  // Replay starts from a checkpoint. This trial was interrupted in step 5 and resumed without further checkpoints.
  stop_at = 5;
  Words kept = words;
  kept.back() = "k";
  REQUIRE(call(folder.path(), main, kept).status == 130);
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(kept, {"--resume", "--checkpoint-every", "0"})).status == 0);
  const Ended from_checkpoint = call(folder.path(), main, with(kept, {"--replay", "seed 0"}));
  CHECK_THAT(from_checkpoint.out, contains("fp32 from step 6: diverged at step 18: ") &&
                                      contains("f64 from step 8: no divergence up to step 38") &&
                                      contains("\nnumerical: "));
  CHECK_THAT(call(folder.path(), main, with(words, {"--replay", "seed 1"})).err,
             contains("a has no diverged trial of that name; did you mean 'seed 0'?"));

  const auto wild = [&](int argc, const char* const* argv) {
    vision::Study study("wild", "Wild.");
    study.axis<double>("--lrs", {1e3}, "Rates");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 2}));
      trial.train(model);
    });
  };
  const Words other{"--dim",         "8",     "--batch", "4", "--steps", "60", "--checkpoint-every", "0.0001",
                    "--no-progress", "--out", "w"};
  const Ended ran = call(folder.path(), wild, other);
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.err, contains("diverged at step"));
  const Ended again = call(folder.path(), wild, with(other, {"--replay", "lr 1000 seed 0"}));
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, contains("\ndynamical: "));
}

TEST_CASE("the f64 steps of a replay equal those of a trial in f64 from the same state") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("wild", "Wild.");
    study.axis<double>("--lrs", {0.01}, "Rates");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 2}));
      trial.train(model);
    });
  };
  // The trial diverges by the loss limit in step 19. The divergence began in step 0, so both passes start from the
  // initial state.
  const Words words{"--dim",       "8",   "--batch",      "4",   "--steps",       "45",
                    "--optimizer", "sgd", "--loss-limit", "0.5", "--no-progress", "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"f32"})).status == 0);
  CHECK_THAT(file(folder, "f32/results.csv"), contains(",diverged,19,"));
  const Ended exact = call(folder.path(), main, with(words, {"f64", "--dtype", "fp64"}));
  CHECK_THAT(file(folder, "f64/results.csv"), contains(",diverged,19,"));
  std::istringstream lines(file(folder, "f64/metrics.jsonl"));
  double loss = 0;
  for (std::string line; std::getline(lines, line);)
    if (const auto json = nlohmann::json::parse(line); json.contains("loss")) loss = json["loss"];
  const Ended replayed = call(folder.path(), main, with(words, {"f32", "--replay", "lr 0.01 seed 0"}));
  INFO(replayed.out << replayed.err);
  // The second pass starts from the initial weights. These weights are equal to those of the f64 study up to rounding
  // to f32, so the losses agree to some digits. If the pass started from the weights after 19 updates, the losses would
  // differ.
  CHECK_THAT(replayed.out, contains("f64 from step 0: diverged at step 19") && contains("\ndynamical: "));
  const std::string said = fmt::format("loss {:.4g}", loss);
  CHECK_THAT(replayed.out, contains(said));
}
