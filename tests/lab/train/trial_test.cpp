// Tests of one trial: checkpoints, evaluation, weights, custom loops, hopeless trials.
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/problem/evaluate.h"
#include "experiments/vision/study.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/train/trial.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/problem/evaluate.h"
#include "nn/gates/gate.h"
#include "nn/gates/method.h"
#include "nn/io/pretrained.h"
#include "nn/io/safetensors.h"
#include "plumb/plumb.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/catch.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("an interrupted trial continues from its checkpoint with the same bits", "[long]") {
  const TemporaryFolder folder;
  const std::string optimizers = GENERATE("adamw", "sgd", "lamb", "adagrad");
  int stop_at = -1;
  int first_step = -1;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("kept", "Kept.");
    // The method admin_profile sets initial values from the first batch.
    study.axis<std::string>("--gates", {"admin_profile"}, "Gates");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 2}));
      first_step = -1;
      trial.train(model, {.before = [&](std::int64_t step) {
                    if (first_step < 0) first_step = static_cast<int>(step);
                    if (step == stop_at) interrupted_by(SIGINT);
                  }});
    });
  };
  const Words words{"--dim",       "8",           "--batch",  "4",           "--steps",     "12",   "--no-progress",
                    "--optimizer", optimizers,    "--warmup", "3",           "--ema-decay", "0.9",  "--drop-key",
                    "0.2",         "--drop-path", "0.1",      "--drop-head", "0.2",         "--out"};
  REQUIRE(call(folder.path(), main, with(words, {"whole"})).status == 0);
  stop_at = 6;
  const Ended stopped = call(folder.path(), main, with(words, {"a"}));
  CHECK(stopped.status == 130);
  CHECK_THAT(stopped.err, contains("interrupted: 0 of 1 trials are finished") && contains("--resume --out a"));
  CHECK(checkpoint_in(folder / "a").filename().string().starts_with("admin_profile-seed-0-"));
  stop_at = -1;
  const Ended resumed = call(folder.path(), main, with(words, {"a", "--resume"}));
  INFO(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK(first_step == 7);
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "whole/metrics.jsonl"));
  CHECK(checkpoint_in(folder / "a").empty());  // the checkpoint is deleted when the trial is complete
}

TEST_CASE("smoothed and mixed labels record the entropy of their targets, also after an interrupt") {
  const TemporaryFolder folder;
  int stop_at = -1;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("soft", "Soft.");
    study.axis<int>("--depths", {1}, "Depths");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial));
      trial.train(model, {.before = [&](std::int64_t step) {
                    if (step == stop_at) interrupted_by(SIGINT);
                  }});
    });
  };
  const auto entropy_of = [&](const std::string& out) {
    const Ledger ledger(folder / (out + "/ledger.jsonl"));
    return ledger.entries().at(0).record.value("target_entropy");
  };
  const Words words{"--dim", "8", "--batch", "4", "--steps", "26", "--eval-images", "20", "--no-progress", "--out"};
  const Words soft{"--mixup", "0.8", "--label-smoothing", "0.2"};
  REQUIRE(call(folder.path(), main, with(words, with({"whole"}, soft))).status == 0);
  stop_at = 21;
  CHECK(call(folder.path(), main, with(words, with({"a"}, soft))).status == 130);
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(words, with({"a", "--resume"}, soft))).status == 0);
  CHECK(entropy_of("a") == entropy_of("whole"));
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
  // Smoothing by 0.2 alone gives each target the weights 0.82 and nine times 0.02; mixed labels have more.
  const double smoothed = -(0.82 * std::log(0.82) + 9 * 0.02 * std::log(0.02));
  CHECK(entropy_of("whole") > smoothed + 0.1);
  CHECK(entropy_of("whole") < std::log(10.0));
  REQUIRE(call(folder.path(), main, with(words, {"s", "--label-smoothing", "0.2"})).status == 0);
  CHECK(entropy_of("s") == Approx(smoothed).epsilon(1e-12));
  REQUIRE(call(folder.path(), main, with(words, {"hard"})).status == 0);
  CHECK_THAT(file(folder, "hard/results.csv") + file(folder, "hard/ledger.jsonl"), !contains("target_entropy"));
}

TEST_CASE("a checkpoint that does not fit is named and the trial starts from the beginning") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  int stop_at = 2;
  std::int64_t began = -1;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study s("one", "One.");
    s.axis<int>("--depths", {1}, "Depths");
    return s.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViT model(vision::vit(trial));
      began = -1;
      trial.train(model, {.before = [&](std::int64_t step) {
                    if (began < 0) began = step;
                    if (step == stop_at) interrupted_by(SIGINT);
                  }});
    });
  };
  REQUIRE(call(folder.path(), main, tiny).status == 130);
  const auto checkpoint = checkpoint_in(folder / "a");
  const std::string good = read_file(checkpoint);
  stop_at = -1;
  const auto resumed = [&](const std::string& content) {
    { std::ofstream(checkpoint, std::ios::binary) << content; }
    std::filesystem::remove(folder / "a/ledger.jsonl");
    const Ended e = call(folder.path(), main, with(tiny, {"--resume"}));
    CHECK(e.status == 0);
    return e.err;
  };
  CHECK_THAT(resumed(good), !contains("starts from the beginning"));
  CHECK(began == 3);
  CHECK_THAT(resumed(good.substr(0, good.size() / 2)),
             contains("depth 1 seed 0 starts from the beginning: ") && contains(checkpoint.filename().string()));
  CHECK(began == 0);
  nn::TensorFile other;
  { std::ofstream(checkpoint, std::ios::binary) << good; }
  other = nn::read_safetensors(checkpoint);
  const auto changed = [&](const char* field, const std::string& value) {
    nn::TensorFile c = other;
    c.metadata[field] = value;
    nn::write_safetensors(checkpoint, c);
    return read_file(checkpoint);
  };
  CHECK_THAT(resumed(changed("key", "0123")),
             contains("starts from the beginning") &&
                 contains("expected the state of a trial with a valid checksum, got a file that was changed"));
  CHECK_THAT(resumed(changed("format", "x")),
             contains("starts from the beginning") && contains("expected the state of a trial of format"));
  CHECK(began == 0);
  std::string bit = good;
  bit[bit.size() - 5] ^= 1;  // changes a bit of a tensor
  CHECK_THAT(resumed(bit), contains("starts from the beginning") && contains("got a file that was changed"));
  // A checkpoint that other code wrote is kept under a new name.
  TrialCheckpoint c = [&] {
    std::ofstream(checkpoint, std::ios::binary) << good;
    return read_checkpoint(checkpoint);
  }();
  c.code = "0123";
  write_checkpoint(checkpoint, c);
  CHECK_THAT(resumed(read_file(checkpoint)),
             contains("starts from the beginning") && contains("other code (0123, this is "));
  CHECK(read_checkpoint(checkpoint.parent_path() / (checkpoint.stem().string() + "-0123.safetensors")).code == "0123");
  c.code = "";
  c.key = "0123";
  write_checkpoint(checkpoint, c);
  CHECK_THAT(resumed(read_file(checkpoint)),
             contains("starts from the beginning") && contains("other settings or data"));
}

TEST_CASE("a trial evaluates some images while it trains and saves its weights") {
  const TemporaryFolder folder;
  EpsilonStudy study;
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words one = with(tiny, {"--depths", "1", "--epsilons", "0.1"});
  REQUIRE(call(folder.path(), main,
               with(one, {"--eval-every", "2", "--eval-images", "50", "--save-weights", "--ema-decay", "0.5"}))
              .status == 0);
  std::istringstream lines(file(folder, "a/metrics.jsonl"));
  std::vector<std::pair<int, double>> evaluated;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("val_accuracy")) evaluated.emplace_back(json["step"], json["val_accuracy"]);
  }
  REQUIRE(evaluated.size() == 2);
  CHECK(evaluated[0].first == 1);
  CHECK(evaluated[1].first == 3);
  for (const auto& [step, accuracy] : evaluated) CHECK(accuracy * 50 == Approx(std::round(accuracy * 50)).margin(1e-9));
  // A model with the saved weights has the recorded accuracy.
  nn::ViT model({.dim = 8, .depth = 1, .method = nn::methods::layerscale(0.1), .pool = nn::Pool::mean});
  nn::load_weights(model, folder / "a/weights/depth-1-epsilon-0.1-seed-0.safetensors");
  const ImageData data = open_data("glyphs", "");
  const Evaluation e = evaluate(model, few_images(data.validation, 50), normalization_of(data.train));
  const auto record = Ledger(folder / "a/ledger.jsonl").entries().at(0).record;
  CHECK(e.accuracy == record.value("val_accuracy"));
  CHECK(e.loss == Approx(record.value("val_loss")).epsilon(1e-6));
}

TEST_CASE("a custom loop supports checkpoints and evaluation only after track()") {
  const TemporaryFolder folder;
  bool tracks = false;
  int stop_at = -1;
  std::vector<double> losses;
  const auto main = [&](int argc, const char* const* argv) {
    return vision::Study("own", "Own.", {.network = false, .optimization = false})
        .run(argc, argv, [&](vision::Trial& trial) {
          nn::ViT model({.dim = 8, .depth = 1, .seed = trial.seed()});
          nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
          if (tracks) trial.track(model, optimizer);
          for (vision::Step& step : trial.loop()) {
            const vision::Batch& batch = step.batch();
            const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
            const Gradients g = backward(loss());
            if (trial.check_divergence(g, loss)) return;
            optimizer.step(g);
            trial.log({{"loss", g.loss()}});
            losses.push_back(g.loss());
            if (optimizer.steps_taken() == stop_at) interrupted_by(SIGINT);
          }
        });
  };
  const Words words{"--batch", "4", "--steps", "6", "--no-progress", "--out"};
  for (const Words& flag :
       {Words{"--eval-every", "2"}, Words{"--save-weights"}, Words{"--stop-hopeless", "--steps", "40"}}) {
    Words given = words;
    if (flag.size() == 3) given.erase(given.begin() + 2, given.begin() + 4);
    const Ended e = call(folder.path(), main, with(given, with({"u"}, flag)));
    CHECK(e.status == 2);
    CHECK_THAT(e.err,
               contains(flag[0] + ": this program does not support the option") && contains("track(model, optimizer)"));
    CHECK_FALSE(std::filesystem::exists(folder / "u"));  // the call was refused before it made the folder
  }
  losses.clear();
  REQUIRE(call(folder.path(), main, with(words, {"plain"})).status == 0);
  const std::vector<double> whole = losses;
  tracks = true;
  stop_at = 3;
  REQUIRE(call(folder.path(), main, with(words, {"t", "--eval-every", "2", "--save-weights"})).status == 130);
  losses.clear();
  stop_at = -1;
  REQUIRE(call(folder.path(), main, with(words, {"t", "--eval-every", "2", "--save-weights", "--resume"})).status == 0);
  CHECK(losses == std::vector<double>(whole.begin() + 3, whole.end()));
  CHECK(std::filesystem::exists(folder / "t/weights/seed-0.safetensors"));
  CHECK_THAT(file(folder, "t/metrics.jsonl"),
             contains("{\"seed\":0,\"step\":3,\"loss\":") && contains(",\"val_loss\":"));
}

// A study scales the deviation of the initial weights to the width (--weight-init recipe_scaled).
TEST_CASE("nn::ViT and the ViT of a study or a loop have the same defaults apart from the initial weights") {
  const TemporaryFolder folder;
  std::vector<std::map<std::string, std::vector<double>>> parameters;
  std::vector<std::vector<double>> logits;
  const auto keep = [&](const lab::Trial& trial, const nn::ViT& model) {
    auto& values = parameters.emplace_back();
    for (const nn::Parameter& p : model.parameters()) values[p.name] = p.value.values();
    const HostBatch first =
        evaluation_batch(vision::images(trial).data().validation, vision::images(trial).normalization(), 0, 4, 1);
    logits.push_back(model(to_tensors(first, vision::images(trial).data().validation).images).values());
  };
  const auto body = [&](lab::Trial& trial) {
    keep(trial, nn::ViT({.channels = vision::images(trial).data().train.channels,
                         .classes = vision::images(trial).data().train.classes,
                         .depth = 2,
                         .method = "layerscale",
                         .recipe = nn::Recipe{.base = nn::Base::scaled_normal},
                         .seed = trial.seed()}));
    keep(trial, nn::ViT(vision::vit(trial, {.depth = 2, .method = "layerscale"})));
    CHECK(vision::vit(trial).mlp_ratio == nn::ViTOptions().mlp_ratio);
    CHECK(vision::vit(trial).depth == nn::ViTOptions().depth);
    CHECK(vision::vit(trial).method->name == nn::ViTOptions().method->name);
  };
  const auto study = [&](int argc, const char* const* argv) {
    return vision::Study("own", "Own.").run(argc, argv, body);
  };
  const auto loop = [&](int argc, const char* const* argv) {
    return vision::Study("own", "Own.", {.network = false, .optimization = false}).run(argc, argv, body);
  };
  for (const Main& main : {Main(study), Main(loop)})
    REQUIRE(call(folder.path(), main,
                 {"--steps", "1", "--batch", "4", "--seeds", "3", "--no-progress", "--overwrite", "--out", "a"})
                .status == 0);
  REQUIRE(parameters.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(parameters[i] == parameters[0]);
    CHECK(logits[i] == logits[0]);
  }
  // A study with a custom loop can also offer the options of the network.
  std::int64_t dim = 0;
  const auto with_options = [&](int argc, const char* const* argv) {
    return vision::Study("own", "Own.", {.optimization = false}).run(argc, argv, [&](lab::Trial& trial) {
      dim = vision::vit(trial).dim;
    });
  };
  REQUIRE(call(folder.path(), with_options, {"--steps", "1", "--dim", "8", "--no-progress", "--out", "b"}).status == 0);
  CHECK(dim == 8);
  CHECK(call(folder.path(), loop, {"--dim", "8"}).status == 2);
}

TEST_CASE("training refuses a model without its declared initial weights unless it is calibrated or pretrained") {
  const TemporaryFolder folder;
  enum class Body { other_seed, changed, pretrained, calibrated } what = Body::other_seed;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("fresh", "Fresh.");
    // The method admin_profile sets initial values from the first batch.
    study.axis<std::string>("--gates", {"admin_profile"}, "Gates");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::ViTOptions o = vision::vit(trial, {.depth = 1});
      if (what == Body::other_seed) o.seed = trial.seed() + 1;
      nn::ViT model(o);
      if (what == Body::changed || what == Body::pretrained) {
        const Tensor w = model.parameters().front().value;
        copy_into((w.detach() + 1).array(), w.array());
      }
      if (what == Body::pretrained) trial.mark_pretrained();
      if (what == Body::calibrated) trial.calibrate(model);
      trial.train(model);
    });
  };
  const auto ended = [&](Body body) {
    what = body;
    return call(folder.path(), main,
                {"--dim", "8", "--batch", "4", "--steps", "2", "--no-progress", "--out",
                 std::to_string(static_cast<int>(body))});
  };
  for (const Body refused : {Body::other_seed, Body::changed}) {
    const Ended e = ended(refused);
    CHECK(e.status == 1);
    CHECK_THAT(e.err,
               contains("[audit_init] expected every tensor of ViT to start as its Init declares for seed 0, got ") &&
                   contains("call initialize() last, after every change of an Init, and with the trial's "
                            "seed (Trial::seed); if the weights are trained, call Trial::mark_pretrained "
                            "before Trial::train"));
  }
  for (const Body trains : {Body::pretrained, Body::calibrated}) {
    const Ended e = ended(trains);
    INFO(e.err);
    CHECK(e.status == 0);
  }
}

TEST_CASE("hopeless trials stop early and can be resumed") {
  const TemporaryFolder folder;
  std::atomic<int> bodies = 0;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("hopeless", "Hopeless.");
    study.axis<int>("--depths", {1}, "Depths");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      ++bodies;
      nn::ViT model(vision::vit(trial));
      trial.train(model);
    });
  };
  const Words words{"--dim", "8", "--batch", "4", "--steps", "60", "--lr", "1e-9", "--no-progress", "--out", "a"};
  const Ended e = call(folder.path(), main, with(words, {"--stop-hopeless"}));
  INFO(e.err);
  CHECK(e.status == 0);
  CHECK_THAT(e.err,
             contains("stopped: loss 2.") && contains("after half of the steps, at least 98 % of chance (2.303)"));
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,hopeless,30,"));
  CHECK_THAT(e.out, contains("hopeless"));
  CHECK_THAT(e.err, contains("1 of 1 trial stopped as hopeless, not finished"));
  CHECK(call(folder.path(), main, with(words, {"--rebuild"})).status == 0);  // the tables also show hopeless trials
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,hopeless,30,"));
  CHECK(call(folder.path(), main, with(words, {"--stop-hopeless", "--resume"})).status == 0);
  CHECK(bodies == 1);  // the trial does not run again, because the rule would stop it again
  const Ended whole = call(folder.path(), main, with(words, {"--resume"}));
  CHECK(whole.status == 0);
  CHECK(bodies == 2);
  CHECK_THAT(file(folder, "a/results.csv"), contains("\n1,0,ok,60,"));
  Words other = words;
  other[10] = "b";
  REQUIRE(call(folder.path(), main, other).status == 0);
  CHECK(timeless(file(folder, "a/results.csv")) ==
        timeless(file(folder, "b/results.csv")));  // the trial continued at the step at which the rule had stopped it
}

TEST_CASE("weights of a model without a card are saved and both the program and the file report it") {
  const TemporaryFolder folder;
  bool by_hand = true;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("by_hand", "By hand.");
    study.axis<std::string>("--names", {"one"}, "Names");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      nn::Method method = nn::methods::layerscale(0.1);
      if (by_hand) method.norm = nn::Norm::post;
      nn::ViT model(vision::vit(trial, {.depth = 2, .method = method}));
      trial.train(model);
    });
  };
  const Ended ended = call(folder.path(), main, with(tiny, {"--save-weights"}));
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.err, contains("--save-weights: ") && contains("one seed 0") && contains("no model card") &&
                            contains("its method \"layerscale:init=0.1\" differs from the method of this name"));
  const std::string weights = "a/weights/one-seed-0.safetensors";
  CHECK_THAT(error_of([&] { nn::card_of(nn::read_safetensors(folder / weights), "w"); }),
             contains("w: these weights are of a model that a card cannot"));
  nn::Method method = nn::methods::layerscale();
  method.norm = nn::Norm::post;
  nn::ViT model({.dim = 8, .depth = 2, .method = method, .pool = nn::Pool::mean});
  nn::load_weights(model, folder / weights);
  by_hand = false;
  const Ended good = call(folder.path(), main, with(tiny, {"--save-weights", "--overwrite"}));
  CHECK_THAT(good.err, !contains("model card"));
  CHECK(std::get<nn::ViTOptions>(nn::card_of(nn::read_safetensors(folder / weights), "w").options).method->label() ==
        "layerscale:init=0.1");
}

TEST_CASE("weights of a custom model are saved and both the program and the file say that they have no card") {
  const TemporaryFolder folder;
  struct Custom : nn::Layer {
    nn::Child<nn::Linear> linear{this, "linear", {.in = 3 * 32 * 32, .out = 10}};
    Tensor forward(const Tensor& x) const override { return linear(reshape(x, {x.dim(0), 3 * 32 * 32})); }
  };
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("custom", "Custom.");
    study.axis<std::string>("--names", {"one"}, "Names");
    return study.run(argc, argv, [&](lab::Trial& trial) {
      Custom model;
      nn::initialize(model, trial.seed());
      trial.train(model);
    });
  };
  const Ended ended = call(folder.path(), main, with(tiny, {"--save-weights"}));
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  const std::string reason = "a card can describe a ViT or a CaiT, and this model is neither";
  CHECK_THAT(ended.err, contains("no model card") && contains(reason));
  const auto weights = folder / "a/weights/one-seed-0.safetensors";
  CHECK_THAT(error_of([&] { nn::card_of(nn::read_safetensors(weights), "w"); }), contains(reason));
  Custom read;
  nn::load_weights(read, weights);
}

namespace {

// The number of steps after which the mean of the last 20 losses was first below `level`. If the mean was never below
// the level, the result is the number of losses.
double steps_below(const std::vector<double>& losses, double level) {
  for (std::size_t end = 20; end <= losses.size(); ++end) {
    double sum = 0;
    for (std::size_t i = end - 20; i < end; ++i) sum += losses[i];
    if (sum / 20 < level) return static_cast<double>(end);
  }
  return static_cast<double>(losses.size());
}

// A study that measures steps_to() of three levels. The body is Trial::train, lab::train or a custom loop.
struct LevelStudy {
  enum class Loop { trial_train, train, check_divergence } loop = Loop::trial_train;
  std::int64_t stop_at = -1;
  double level = 1.75;

  int operator()(int argc, const char* const* argv) const {
    vision::Study study("levels", "Levels.");
    study.axis<std::string>("--gates", {"pre"}, "Gates");
    study.claim("a loss of 1.75 is reached", "a test", below(study.steps_to(level), 60, {{"gate", "pre"}}));
    CHECK(study.steps_to(1e-9) == "steps_to_1e-09");
    CHECK(study.steps_to(50) == "steps_to_50");
    CHECK(study.steps_to(50) == "steps_to_50");  // the second call adds no second column
    return study.run(argc, argv, [&](vision::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 1}));
      const auto interrupt = [&](std::int64_t step) {
        if (step == stop_at) interrupted_by(SIGINT);
      };
      if (loop == Loop::trial_train) return trial.train(model, {.before = interrupt});
      nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
      if (loop == Loop::train) {
        ImageTask task(vision::images(trial).data().train, trial.task_settings(), model,
                       vision::images(trial).normalization());
        for (vision::Step& step : trial.loop(model, optimizer, {.observer = {.before = interrupt}, .trace_every = 1}))
          step.minimise(task.loss_of(step.number()));
        return;
      }
      trial.track(model, optimizer);
      for (vision::Step& step : trial.loop()) {
        const vision::Batch& batch = step.batch();
        const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
        const Gradients g = backward(loss());
        if (trial.check_divergence(g, loss)) return;
        optimizer.step(g);
        trial.trace({{"loss", g.loss()}});
        interrupt(optimizer.steps_taken() - 1);
      }
    });
  }
};

const Words sixty{"--dim", "8", "--batch", "16", "--steps", "60", "--no-progress", "--out"};

Record only_record(const TemporaryFolder& folder, const std::string& run) {
  const Ledger ledger(folder / (run + "/ledger.jsonl"));
  REQUIRE(ledger.entries().size() == 1);
  return ledger.entries().front().record;
}

}  // namespace

TEST_CASE("a trial measures the steps to the levels of the study and to no other level") {
  const TemporaryFolder folder;
  LevelStudy study;
  study.loop = GENERATE(LevelStudy::Loop::train, LevelStudy::Loop::check_divergence);
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Ended e = call(folder.path(), main, with(sixty, {"a"}));
  INFO(e.err);
  REQUIRE(e.status == 0);
  const Record record = only_record(folder, "a");
  std::vector<double> losses;
  for (const StepValues& step : record.metrics) losses.push_back(value_of(step.values, "loss"));
  REQUIRE(losses.size() == 60);
  const double expected = steps_below(losses, study.level);
  REQUIRE(expected > 20);  // otherwise the test would not distinguish the level 1.75 from a level of 50
  REQUIRE(expected < 60);
  CHECK(record.value("steps_to_1.75") == expected);
  CHECK(record.value("steps_to_1e-09") == 60);  // never reached
  CHECK(record.value("steps_to_50") == 20);     // the first step at which the mean is defined
  CHECK_THAT(file(folder, "a/results.csv"), contains("steps_to_1.75,steps_to_1e-09,steps_to_50\n"));
  EpsilonStudy other;
  REQUIRE(call(folder.path(), [&](int argc, const char* const* argv) { return other(argc, argv); },
               {"--dim", "8", "--batch", "4", "--steps", "2", "--no-progress", "--out", "b"})
              .status == 0);
  CHECK_THAT(file(folder, "b/results.csv"), !contains("steps_to"));
}

TEST_CASE("an interrupted trial that is resumed measures the same steps to a level", "[long]") {
  const TemporaryFolder folder;
  LevelStudy study;
  study.loop = GENERATE(LevelStudy::Loop::trial_train, LevelStudy::Loop::train, LevelStudy::Loop::check_divergence);
  const auto main = [&](int argc, const char* const* argv) { return study(argc, argv); };
  const Words words = with(sixty, {"whole"});
  const Words rate = study.loop == LevelStudy::Loop::trial_train ? Words{"--lr", "1e-2"} : Words{};
  REQUIRE(call(folder.path(), main, with(words, rate)).status == 0);
  const auto reached = static_cast<std::int64_t>(only_record(folder, "whole").value("steps_to_1.75"));
  REQUIRE(reached > 20);
  REQUIRE(reached < 55);
  for (const std::int64_t at : {reached - 2, reached + 3}) {
    const std::string out = "at" + std::to_string(at);
    study.stop_at = at;
    REQUIRE(call(folder.path(), main, with(with(sixty, {out}), rate)).status == 130);
    study.stop_at = -1;
    const Ended resumed = call(folder.path(), main, with(with(sixty, {out, "--resume"}), rate));
    INFO(resumed.err);
    REQUIRE(resumed.status == 0);
    CHECK_THAT(resumed.err, !contains("from the beginning"));
    CHECK(timeless(file(folder, out + "/results.csv")) == timeless(file(folder, "whole/results.csv")));
  }
}

TEST_CASE("a trial that diverges or fails measures no steps to a level") {
  const TemporaryFolder folder;
  bool fails = GENERATE(false, true);
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("levels", "Levels.", {.network = false, .optimization = false});
    study.steps_to(2);
    return study.run(argc, argv, [&](lab::Trial& trial) {
      for (lab::Step& at : trial.loop()) {
        const std::int64_t step = at.number();
        if (step == 25 && fails) throw Error("for a test");
        trial.log({{"loss", step == 25 ? unknown : 1}});
      }
    });
  };
  CHECK(call(folder.path(), main, {"--steps", "30", "--no-progress", "--out", "a"}).status == (fails ? 1 : 0));
  const Record record = only_record(folder, "a");
  CHECK(record.status == (fails ? Status::failed : Status::diverged));
  CHECK(std::isnan(record.value("steps_to_2")));
  CHECK_THAT(file(folder, "a/results.csv"), !contains("steps_to"));
}

TEST_CASE("a study refuses levels of a loss that no mean loss can have") {
  for (const double level : {0.0, -1.0, std::numeric_limits<double>::infinity(), unknown}) {
    vision::Study study("levels", "Levels.");
    CHECK(error_of([&] { study.steps_to(level); }) ==
          fmt::format("[study] expected a finite training loss above 0 in steps_to(), got {}; name a level that trials "
                      "reach",
                      level));
  }
}

TEST_CASE("a claim on the steps to a level needs a body that reports losses") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    vision::Study study("silent", "Silent.", {.network = false, .optimization = false});
    study.claim("fast", "a test", below(study.steps_to(2), 10, {{"seed", 0}}));
    return study.run(argc, argv, [&](lab::Trial& trial) {
      for ([[maybe_unused]] lab::Step& step : trial.loop()) trial.log({{"other", 1}});
    });
  };
  const Ended e = call(folder.path(), main, {"--steps", "30", "--no-progress", "--out", "a"});
  CHECK(e.status == 1);
  CHECK_THAT(e.err, contains("expected a value that trials measure, got steps_to_2"));
}
