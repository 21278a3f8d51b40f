// Runs cases of optimizers with given gradients, and of clipping by the global norm.
#include <cmath>

#include "core/backend.h"
#include "nn/optim/optimizer.h"
#include "plumb/plumb.h"
#include "tests/parity/case.h"

namespace plumb::parity {
namespace {

// The parameters of the case. The parameters with weight decay have a role that decays.
struct Parameters : nn::Module {
  Parameters(const Case& c) : Module("Parameters") {
    for (const std::string& name : c.names("param.")) {
      const bool decays = c.settings.at("weight_decay").at(name).get<double>() != 0;
      values[name] = parameter(name, c.tensor("param." + name), decays ? Role::weight : Role::gate);
    }
  }
  nn::NamedTensors values;
};

std::unique_ptr<nn::Optimizer> make_optimizer(const nlohmann::json& s, const Parameters& parameters) {
  const std::string name = s.at("optimizer");
  const std::vector<double> rates = s.at("lr");
  const nn::LearningRate lr([rates](std::int64_t step) { return rates.at(static_cast<std::size_t>(step)); });
  double decay = 0;  // a single number, because roles decide which parameters decay
  for (const auto& [parameter, value] : s.at("weight_decay").items()) {
    const double d = value.get<double>();
    check(d == 0 || decay == 0 || d == decay, "expected one weight decay, got {} and {}", decay, d);
    decay = std::max(decay, d);
  }
  if (name == "adamw")
    return std::make_unique<nn::AdamW>(parameters.parameters(), nn::AdamWOptions{.lr = lr,
                                                                                 .beta1 = s.at("betas").at(0),
                                                                                 .beta2 = s.at("betas").at(1),
                                                                                 .eps = s.at("eps"),
                                                                                 .weight_decay = decay});
  if (name == "sgd" || name == "sgd_nesterov")
    return std::make_unique<nn::Sgd>(parameters.parameters(), nn::SgdOptions{.lr = lr,
                                                                             .momentum = s.value("momentum", 0.0),
                                                                             .nesterov = s.value("nesterov", false),
                                                                             .weight_decay = decay});
  if (name == "adagrad")
    return std::make_unique<nn::Adagrad>(parameters.parameters(),
                                         nn::AdagradOptions{.lr = lr, .eps = s.at("eps"), .weight_decay = decay});
  if (name == "lamb")
    return std::make_unique<nn::Lamb>(parameters.parameters(), nn::LambOptions{.lr = lr,
                                                                               .beta1 = s.at("betas").at(0),
                                                                               .beta2 = s.at("betas").at(1),
                                                                               .eps = s.at("eps"),
                                                                               .weight_decay = decay});
  fail(fmt::format("expected a known optimizer, got \"{}\"", name));
}

// The gradients g that the case gives, computed as the gradients of sum(p * g).
Gradients gradients(const nn::NamedTensors& parameters, const Case& c, const std::string& prefix) {
  Tensor total;
  for (const auto& [name, p] : parameters) {
    const Tensor part = sum(p * c.tensor(prefix + name));
    total = total.defined() ? total + part : part;
  }
  return backward(total);
}

}  // namespace

void run_optimizer(const Case& c, Judge& judge) {
  const Parameters parameters(c);
  const auto optimizer = make_optimizer(c.settings, parameters);
  for (std::int64_t i = 0; i < c.settings.at("steps").get<std::int64_t>(); ++i)
    optimizer->step(gradients(parameters.values, c, fmt::format("step.{}.grad.", i)));
  for (const auto& [name, value] : parameters.values) judge.answer("out." + name, value);
}

// Clipping is a part of an optimizer step: plain SGD with learning rate 1 on zeros moves by the clipped gradient.
void run_clip(const Case& c, Judge& judge) {
  struct Zeros : nn::Module {
    Zeros(const Case& of) : Module("Zeros") {
      for (const std::string& name : of.names("in."))
        values[name] = parameter(name, zeros(of.tensors.at("in." + name).shape()), Role::weight);
    }
    nn::NamedTensors values;
  };
  const Zeros parameters(c);
  nn::Sgd optimizer(parameters.parameters(), {.lr = 1.0, .clip_norm = c.settings.at("max_norm").get<double>()});
  const Gradients g = gradients(parameters.values, c, "in.");
  judge.answer("out.norm", full({1}, g.norm()));
  optimizer.step(g);
  for (const auto& [name, value] : parameters.values) judge.answer("out." + name, -value);
}

}  // namespace plumb::parity
