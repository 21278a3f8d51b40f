// Compares optimizers and clipping with the results of PyTorch in f64. The cases are outside the repository
// (PLUMB_TEST_DATA/reference/cases); if these files are missing, the tests are skipped.
#include <nlohmann/json.hpp>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct WeightAndGate : nn::Module {
  explicit WeightAndGate(const nn::NamedTensors& t) : Module("Model") {
    weight = parameter("weight", t.at("param.weight"), Role::weight);
    gamma = parameter("gamma", t.at("param.gamma"), Role::gate);
  }
  Gradients gradients(const Tensor& of_weight, const Tensor& of_gamma) const {
    return backward(sum(weight * of_weight) + sum(gamma * of_gamma));
  }
  Tensor weight, gamma;
};

std::filesystem::path cases() { return outside_data() / "reference/cases"; }

std::unique_ptr<nn::Optimizer> optimizer_for(const nlohmann::json& c, const nn::Module& m) {
  const std::string name = c["optimizer"];
  const nn::LearningRate lr(
      [rates = c["lr"].get<std::vector<double>>()](std::int64_t s) { return rates.at(static_cast<std::size_t>(s)); });
  const double decay = c["weight_decay"]["weight"];
  if (name == "adamw")
    return std::make_unique<nn::AdamW>(
        m.parameters(),
        nn::AdamWOptions{
            .lr = lr, .beta1 = c["betas"][0], .beta2 = c["betas"][1], .eps = c["eps"], .weight_decay = decay});
  if (name == "adagrad")
    return std::make_unique<nn::Adagrad>(m.parameters(),
                                         nn::AdagradOptions{.lr = lr, .eps = c["eps"], .weight_decay = decay});
  return std::make_unique<nn::Sgd>(
      m.parameters(),
      nn::SgdOptions{
          .lr = lr, .momentum = c["momentum"], .nesterov = c.value("nesterov", false), .weight_decay = decay});
}

}  // namespace

TEST_CASE("optimizers agree with PyTorch in f64") {
  if (!std::filesystem::exists(cases())) PLUMB_SKIP("no reference cases in " + cases().string() + " (PLUMB_TEST_DATA)");
  const DefaultsScope f64(reference_f64);
  for (const std::string name : {"adamw", "sgd", "sgd_nesterov", "adagrad"}) {
    INFO(name);
    const nn::TensorFile file = nn::read_safetensors(cases() / ("optimizer_" + name + ".safetensors"));
    const auto settings = nlohmann::json::parse(file.metadata.at("case"));
    const WeightAndGate model(file.tensors);
    const auto optimizer = optimizer_for(settings, model);
    for (int s = 0; s < settings["steps"].get<int>(); ++s) {
      const std::string step = fmt::format("step.{}.grad.", s);
      optimizer->step(model.gradients(file.tensors.at(step + "weight"), file.tensors.at(step + "gamma")));
    }
    CHECK(relative_error(model.weight, file.tensors.at("out.weight")) < 1e-12);
    CHECK(relative_error(model.gamma, file.tensors.at("out.gamma")) < 1e-12);
  }
}

TEST_CASE("gradient clipping agrees with PyTorch in f64") {
  if (!std::filesystem::exists(cases())) PLUMB_SKIP("no reference cases in " + cases().string() + " (PLUMB_TEST_DATA)");
  const DefaultsScope f64(reference_f64);
  const nn::TensorFile file = nn::read_safetensors(cases() / "clip_grad_norm.safetensors");
  const auto& t = file.tensors;
  const double max_norm = nlohmann::json::parse(file.metadata.at("case"))["max_norm"];
  const WeightAndGate model(
      {{"param.weight", zeros_like(t.at("in.weight"))}, {"param.gamma", zeros_like(t.at("in.gamma"))}});
  const Gradients g = model.gradients(t.at("in.weight"), t.at("in.gamma"));
  CHECK(g.norm() == Approx(t.at("out.norm").item()).epsilon(1e-12));
  nn::Sgd(model.parameters(), {.lr = 1, .clip_norm = max_norm}).step(g);
  CHECK(relative_error(model.weight, -t.at("out.weight")) < 1e-12);
  CHECK(relative_error(model.gamma, -t.at("out.gamma")) < 1e-12);
}
