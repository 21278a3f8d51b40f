#include <algorithm>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// x + min(step / 10, 1) f(LN(x))
struct Ramp : nn::Gate {
  explicit Ramp(const nn::GateContext& c) : step(c.training_step()) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + std::min(static_cast<double>(step()) / 10, 1.0) * branch;
  }
  nn::TrainingStep step;
};

// x + min(step / T, 1) f(LN(x)) for a constant T
struct LongRamp : nn::Gate {
  explicit LongRamp(const nn::GateContext& c) : step(c.training_step()), steps(c.constant("T")) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + std::min(static_cast<double>(step()) / steps, 1.0) * branch;
  }
  nn::TrainingStep step;
  double steps;
};

nn::ViT ramp_model(std::uint64_t seed) {
  return nn::ViT({.image = 8,
                  .patch = 4,
                  .channels = 1,
                  .classes = 3,
                  .dim = 8,
                  .depth = 2,
                  .method = nn::Method{.name = "ramp", .build = nn::gates_from<Ramp>},
                  .seed = seed});
}

const Tensor& grey_images() {
  static const Tensor x = random_normal({2, 1, 8, 8}, 0, "images");
  return x;
}

std::vector<double> trained(const nn::ViT& model, std::uint32_t step) {
  const RandomScope random({.seed = 1, .step = step});
  return model(grey_images()).values();
}

std::vector<double> evaluated(nn::ViT& model) {
  const nn::EvaluationScope scope(model);
  return model(grey_images()).values();
}

double counter(const nn::Module& model) {
  for (const nn::Parameter& p : model.parameters())
    if (p.name == "training_step") return p.value.item();
  FAIL("no parameter training_step");
  return -1;
}

}  // namespace

TEST_CASE("evaluation uses the training step of the last training pass") {
  nn::ViT model = ramp_model(1);
  const auto at_0 = evaluated(model);
  CHECK(trained(model, 0) == at_0);
  const auto at_7 = trained(model, 7);
  CHECK(at_7 != at_0);
  CHECK(evaluated(model) == at_7);
  CHECK(counter(model) == 7);
  {
    const RandomScope other({.seed = 1, .step = 3});  // an evaluation within another step, as in a training loop
    CHECK(evaluated(model) == at_7);
  }
  CHECK_THAT(error_of([&] { (void)model(grey_images()); }), contains("expected an open RandomScope"));
}

TEST_CASE("the training step is saved with the weights and is neither trained nor averaged") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "ramp.safetensors";
  nn::ViT model = ramp_model(1), other = ramp_model(2);
  nn::Ema ema(model, {.decay = 0.5});
  const auto at_4 = trained(model, 4);
  ema.update();
  nn::save_weights(model, file);
  nn::load_weights(other, file);
  CHECK(evaluated(other) == at_4);
  CHECK(counter(other) == 4);
  {
    const nn::EmaScope averages(ema);
    CHECK(counter(model) == 4);  // an average of 0 and 4 would be 2
  }
  for (const nn::Parameter& p : model.parameters())
    if (p.name == "training_step") {
      CHECK(p.frozen());
      CHECK(p.role == nn::Role::counter);
    }
}

TEST_CASE("pretrained weights of a model without the training step start at step 0") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "pre.safetensors";
  const nn::ViT plain(
      {.image = 8, .patch = 4, .channels = 1, .classes = 3, .dim = 8, .depth = 2, .method = "pre", .seed = 3});
  nn::save_weights(plain, file);
  nn::ViT model = ramp_model(1);
  const nn::TensorFile weights = nn::read_safetensors(file);
  CHECK_THAT(error_of([&] { nn::load_pretrained(model, weights, "pre.safetensors"); }), contains("training_step"));
  CHECK_NOTHROW(nn::load_pretrained(model, weights, "pre.safetensors", {.new_gates = true}));
  CHECK(counter(model) == 0);
  const std::vector<double> at_10 = trained(model, 10), of_plain = plain(grey_images()).values();
  for (std::size_t i = 0; i < at_10.size(); ++i) CHECK(at_10[i] == Approx(of_plain[i]));
}

TEST_CASE("networks that differ only after the first steps do not compute the same function") {
  nn::register_method<LongRamp>("long_ramp",
                                {.formula = "x + min(step / T, 1) f(LN(x))",
                                 .source = "test",
                                 .constants = {{.name = "T", .standard = 10, .least = 1, .meaning = "length"}}});
  const TemporaryFolder folder;
  const auto file = folder.path() / "long_ramp.safetensors";
  const auto vit = [](const char* gate) {
    return nn::ViT(
        {.image = 8, .patch = 4, .channels = 1, .classes = 3, .dim = 8, .depth = 2, .method = gate, .seed = 1});
  };
  const nn::ViT saved = vit("long_ramp:T=10");
  nn::save_weights(saved, file, {}, nn::metadata_of(*nn::card_of(saved)));
  const auto same = [&](const char* gate) {
    nn::ViT model = vit(gate);
    return nn::load_pretrained(model, nn::read_safetensors(file), "w").same_function;
  };
  CHECK(same("long_ramp:T=10") == true);
  CHECK(same("long_ramp:T=100") == false);
}

TEST_CASE("a model whose gates do not ask for the training step has no parameter for it") {
  const nn::ViT model({.image = 8, .patch = 4, .channels = 1, .classes = 3, .dim = 8, .depth = 1});
  for (const nn::Parameter& p : model.parameters()) CHECK(p.name != "training_step");
}

TEST_CASE("a checkpointed block repeats the training step of its forward pass") {
  nn::ViT model = ramp_model(1);
  const auto gradients = [&](bool again) {
    model.checkpoint_blocks(again);
    Tensor loss;
    {
      const RandomScope random({.seed = 1, .step = 6});
      loss = sum(model(grey_images()));
    }
    const RandomScope later({.seed = 1, .step = 9});
    (void)model(grey_images());
    return grad(loss, model.trainable());
  };
  const Tensors plain = gradients(false), repeated = gradients(true);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i].values() == repeated[i].values());
}
