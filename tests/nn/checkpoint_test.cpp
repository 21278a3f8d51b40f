#include "nn/optim/checkpoint.h"
#include "plumb/plumb.h"

#include "nn/io/safetensors.h"
#include "nn/io/weights.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct SmallImageNet : nn::Layer {
  nn::Child<nn::Conv2d> conv{this, "conv", {.in = 1, .out = 3, .kernel = 3}};
  nn::Child<nn::BatchNorm2d> norm{this, "norm", 3};
  nn::Child<nn::Dropout> dropout{this, "dropout", 0.3};
  nn::Child<nn::Linear> head{this, "head", {.in = 3, .out = 2}};
  Tensor forward(const Tensor& images) const override { return head(dropout(mean(relu(norm(conv(images))), {2, 3}))); }
};

// A training of 10 steps with a schedule, dropout, batch norm and averages.
struct SmallImageTraining {
  SmallImageNet model;
  nn::AdamW optimizer{model.parameters(), {.lr = nn::warmup_cosine(0.1, 3, 10)}};
  nn::Ema ema{model, {.warm_up = true}};

  explicit SmallImageTraining(std::uint64_t seed) { nn::initialize(model, seed); }
  void run(std::int64_t last) {
    while (optimizer.steps_taken() < last) {
      const auto step = static_cast<std::uint32_t>(optimizer.steps_taken());
      const RandomScope random({.seed = 1, .step = step});
      const Tensor images = random_normal({8, 1, 5, 5}, step, "images");
      optimizer.step(backward(cross_entropy(model(images), integers({0, 1, 0, 1, 1, 0, 1, 0}))));
      ema.update();
    }
  }
  std::map<std::string, std::vector<double>> state() {
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, tensor] : nn::training_state(model, optimizer, &ema)) values[name] = tensor.values();
    return values;
  }
};

}  // namespace

TEST_CASE("a training that continues from a checkpoint has the bits of an uninterrupted one") {
  const TemporaryFolder folder;
  SmallImageTraining whole(0);
  whole.run(4);
  nn::save_checkpoint(folder / "at_4", whole.model, whole.optimizer, &whole.ema);
  SmallImageTraining resumed(7);
  CHECK(resumed.state() != whole.state());
  nn::load_checkpoint(folder / "at_4", resumed.model, resumed.optimizer, &resumed.ema);
  CHECK(resumed.state() == whole.state());
  CHECK(resumed.optimizer.steps_taken() == 4);
  CHECK(resumed.optimizer.learning_rate() == whole.optimizer.learning_rate());
  whole.run(10), resumed.run(10);
  CHECK(resumed.state() == whole.state());
}

TEST_CASE("a checkpoint without averages restores model and optimizer") {
  const TemporaryFolder folder;
  SmallImageTraining whole(0), resumed(7);
  whole.run(4);
  nn::save_checkpoint(folder / "c", whole.model, whole.optimizer);
  nn::load_checkpoint(folder / "c", resumed.model, resumed.optimizer);
  CHECK(nn::training_state(resumed.model, resumed.optimizer).size() ==
        nn::training_state(whole.model, whole.optimizer).size());
  whole.run(10), resumed.run(10);
  CHECK(resumed.model.head.weight().values() == whole.model.head.weight().values());
}

TEST_CASE("a checkpoint that does not fit is refused and changes nothing") {
  const TemporaryFolder folder;
  SmallImageTraining saved(0), own(7);
  saved.run(2), own.run(1);
  nn::save_checkpoint(folder / "c", saved.model, saved.optimizer, &saved.ema);
  nn::save_weights(saved.model, folder / "weights");
  const std::string what = "[load_checkpoint] " + (folder / "c").string();
  const auto before = own.state();
  const auto refused = [&](const std::string& file, nn::Optimizer& optimizer, nn::Ema* ema) {
    const std::string message = error_of([&] { nn::load_checkpoint(folder / file, own.model, optimizer, ema); });
    CHECK(own.state() == before);
    return message;
  };
  // Other files.
  CHECK(refused("weights", own.optimizer, &own.ema) ==
        "[load_checkpoint] " + (folder / "weights").string() +
            ": expected a file of save_checkpoint(), got one of another format; load_weights() reads the weights of a "
            "model");
  CHECK_THAT(refused("none", own.optimizer, &own.ema), contains("none"));
  // Another optimizer, also one with a state of the same names.
  nn::Lamb lamb(own.model.parameters(), {});
  CHECK(refused("c", lamb, &own.ema) == what + ": expected the state of the optimizer Lamb, got that of AdamW");
  // Averages on one side only.
  CHECK(refused("c", own.optimizer, nullptr) ==
        what + ": expected a state without averages, got one with averages: pass the Ema");
  nn::save_checkpoint(folder / "plain", saved.model, saved.optimizer);
  CHECK_THAT(refused("plain", own.optimizer, &own.ema), contains("expected a state with averages, got one without"));
  // Missing parts of the state.
  nn::TensorFile file = nn::read_safetensors(folder / "c");
  for (const auto& [name, begin] : {std::pair("model.head.weight", ", the model: expected 8 tensors"),
                                    {"optimizer.head.weight.moment1", ", [optimizer] load_state: expected"},
                                    {"optimizer.steps", ", [optimizer] load_state: expected"},
                                    {"ema.head.weight.average", ", [ema] load_state: expected"}}) {
    INFO(name);
    nn::TensorFile part = file;
    part.tensors.erase(name);
    nn::write_safetensors(folder / "part", part);
    const std::string message = refused("part", own.optimizer, &own.ema);
    CHECK_THAT(message,
               contains(begin) && contains("1 missing: " + std::string(name).substr(std::string(name).find('.') + 1)));
  }
  // Further tensors, and weights of another dtype.
  nn::TensorFile more = file, wide = file;
  more.tensors["step"] = ones({1});
  wide.tensors["model.head.weight"] = cast(wide.tensors["model.head.weight"], DType::f64);
  nn::write_safetensors(folder / "more", more);
  nn::write_safetensors(folder / "wide", wide);
  CHECK_THAT(refused("more", own.optimizer, &own.ema),
             contains(": expected tensors of a model, an optimizer and averages, got step"));
  CHECK_THAT(refused("wide", own.optimizer, &own.ema), contains(": expected head.weight in f32, got f64"));
  // Another model.
  nn::Linear other({.in = 3, .out = 2});
  nn::initialize(other, 0);
  const std::vector<double> weight = other.weight().values();
  nn::AdamW of_other(other.parameters(), {});
  nn::Ema average(other, {});
  CHECK_THAT(error_of([&] { nn::load_checkpoint(folder / "c", other, of_other, &average); }),
             contains(what + ", the model: expected 2 tensors") && contains("2 missing: bias, weight"));
  CHECK(other.weight().values() == weight);
}
