// Mistakes with optimizers: gradients of other variables, learning rates, state.
#include <tuple>

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// A model with two parameters, w and gate. The loss is a linear function of both.
struct Model : nn::Module {
  Model() : Module("Model") {}
  Tensor w = parameter("w", tensor({1, 2, 3}, {3}), Role::weight),
         gate = parameter("gate", tensor({0.5}, {1}), Role::gate);
  Tensor loss() const { return sum(w * gate); }
};

nn::Parameter of(const Tensor& value, const std::string& name = "p") {
  return {name, value, nn::Role::weight, nn::Init::constant(0)};
}

}  // namespace

TEST_CASE("misuse: the gradient of an unregistered tensor is refused by name") {
  Model model;
  const Tensor scale = variable(ones({3}));
  scale.node()->name = "scale";
  nn::AdamW optimizer(model.parameters(), {});
  CHECK_REFUSED(optimizer.step(backward(model.loss() + sum(scale))),
                "[optimizer] expected gradients of its own parameters only, got 1 of other variables, which would "
                "never train: scale [3]; register them");
  CHECK(optimizer.steps_taken() == 0);
  CHECK(model.w.values() == std::vector<double>{1, 2, 3});
  CHECK_NOTHROW(optimizer.step_own(backward(model.loss() + sum(scale))));
  CHECK(optimizer.steps_taken() == 1);
  CHECK(model.w.values() != std::vector<double>{1, 2, 3});
}

TEST_CASE("misuse: a tensor without a name that was made in a forward pass") {
  Model model;
  nn::Sgd optimizer(model.parameters(), {});
  const PathScope path(std::make_shared<const std::string>("Model.fc"));
  CHECK_REFUSED(optimizer.step(backward(model.loss() + sum(variable(ones({2, 2}))))),
                "a variable without a name [2, 2] made in Model.fc");
}

TEST_CASE("misuse: an unregistered module") {
  Model model, forgotten;
  nn::Sgd optimizer(model.parameters(), {});
  CHECK_REFUSED(optimizer.step(backward(model.loss() + forgotten.loss())),
                "got 2 of other variables, which would never train: w [3], gate [1]; register");
}

TEST_CASE("misuse: a parameter on which the loss does not depend") {
  Model model;
  nn::Sgd optimizer(model.parameters(), {});
  CHECK_REFUSED(optimizer.step(backward(sum(model.w))),
                "[optimizer] expected a gradient for gate [1], got none: the loss does not depend on the parameter");
  CHECK_REFUSED(optimizer.step_own(backward(sum(model.w))), "[optimizer] expected a gradient for gate [1], got none");
}

TEST_CASE("misuse: a parameter unfrozen after the loss was computed") {
  Model model;
  model.own("gate").frozen() = true;
  nn::Sgd optimizer(model.parameters(), {});
  const Gradients g = backward(model.loss());
  model.freeze(false);
  CHECK_REFUSED(optimizer.step(g),
                "expected a gradient for gate [1], got none: the loss does not depend on the parameter, or the "
                "parameter was frozen");
}

TEST_CASE("misuse: a gradient hook that returns another shape never reaches an optimizer") {
  Model model;
  nn::AdamW optimizer(model.parameters(), {});
  const Handle hook = model.w.on_gradient([](const Tensor& g) { return sum(g); });
  CHECK_REFUSED(optimizer.step(backward(model.loss())), "[on_gradient] expected f32 [3], got f32 []");
}

TEST_CASE("misuse: a parameter whose value has another shape than its variable") {
  Model model;
  nn::Sgd optimizer({of(Tensor(ones({5}).array(), model.w.node()), "w")}, {});
  CHECK_REFUSED(optimizer.step(backward(sum(model.w))), "[optimizer] expected a gradient f32 [5] for w, got f32 [3]");
}

TEST_CASE("misuse: two gradients of one variable") {
  Model model;
  nn::Sgd optimizer(model.parameters(), {});
  const Gradients g(zeros({}),
                    {{model.w.node(), ones({3})}, {model.w.node(), ones({3})}, {model.gate.node(), ones({1})}});
  CHECK_REFUSED(optimizer.step(g), "[optimizer] expected one gradient per variable, got two of w [3]");
}

TEST_CASE("misuse: no parameters or a repeated parameter or a constant") {
  Model model;
  auto twice = model.parameters();
  twice.push_back(twice[0]);
  CHECK_REFUSED(nn::Sgd({}, {}), "[optimizer] expected at least one parameter, got none");
  struct Forgetful : nn::Module {
    nn::Linear fc{{.in = 2, .out = 2}};  // should be an nn::Child
  };
  CHECK_REFUSED(nn::AdamW(Forgetful().parameters(), {}),
                "register the parameters of a module with parameter(), and declare its member modules as nn::Child");
  CHECK_REFUSED(nn::Sgd(twice, {}), "[optimizer] expected each parameter once, got the same one as w and w");
  auto constant = model.parameters();
  constant[0].value = ones({3});
  CHECK_REFUSED(nn::Sgd(constant, {}), "[optimizer] expected variables, got a constant f32 [3] as w");
}

TEST_CASE("misuse: parameters of two devices or dtypes in one optimizer") {
  const Tensor here = variable(ones({2})), there = variable(ones({2}, reference)), wide = variable(ones({2}, f64));
  CHECK_REFUSED(nn::AdamW({of(here, "a"), of(there, "b")}, {}),
                "[optimizer] expected parameters of one dtype on one device, got a in f32 on cpu and b in f32 on "
                "reference: make a separate optimizer for each");
  CHECK_REFUSED(nn::AdamW({of(here, "a"), of(wide, "b")}, {}), "got a in f32 on cpu and b in f64 on cpu");
}

TEST_CASE("misuse: non-finite or negative factors that are set after the optimizer was created") {
  Model model;
  nn::AdamW optimizer(model.parameters(), {});
  for (const auto& [lr, decay, eps] : {std::tuple(not_a_number, 1.0, 1.0), std::tuple(-1.0, 1.0, 1.0),
                                       std::tuple(1.0, not_a_number, 1.0), std::tuple(1.0, 1.0, 0.0)}) {
    nn::Parameter& p = model.own("w");
    p.lr_factor() = lr, p.decay_factor() = decay, p.eps_factor() = eps;
    CHECK_REFUSED(optimizer.step(backward(model.loss())),
                  "[optimizer] expected finite factors for w: at least 0 for learning rate and decay, above 0 for eps");
    CHECK_REFUSED(nn::Sgd(model.parameters(), {}), "[optimizer] expected finite factors for w");
  }
  CHECK(optimizer.steps_taken() == 0);
  CHECK(model.w.values() == std::vector<double>{1, 2, 3});
}

TEST_CASE("misuse: a learning rate that is no function, a warm-up to no number, and Nesterov without momentum") {
  Model model;
  CHECK_REFUSED(nn::LearningRate(std::function<double(std::int64_t)>()),
                "[learning_rate] expected a function of the step, got an empty one");
  CHECK_REFUSED(nn::warmup_constant(not_a_number, 3), "[learning_rate] expected a finite learning rate of at least 0");
  CHECK_REFUSED(nn::Sgd(model.parameters(), {.nesterov = true}),
                "[sgd] expected a momentum above 0 with nesterov, got 0");
}

TEST_CASE("misuse: the state of another optimizer") {
  Model model;
  nn::AdamW adamw(model.parameters(), {});
  nn::Sgd sgd(model.parameters(), {.momentum = 0.9});
  CHECK_REFUSED(sgd.load_state(adamw.state()), "2 missing: gate.velocity, w.velocity; 4 unexpected: gate.moment1");
}

TEST_CASE("misuse: state with other shapes or negative counts or undefined tensors") {
  Model model;
  nn::AdamW optimizer(model.parameters(), {});
  nn::NamedTensors state = optimizer.state();
  state["w.moment1"] = zeros({4});
  CHECK_REFUSED(optimizer.load_state(state), "1 of another shape or dtype: w.moment1 (expected f32 [3], got f32 [4])");
  state["w.moment1"] = Tensor();
  CHECK_REFUSED(optimizer.load_state(state), "w.moment1 (expected f32 [3], got an undefined tensor)");
  state["w.moment1"] = zeros({3});
  state["steps"] = integers({-3}, {});
  CHECK_REFUSED(optimizer.load_state(state), "expected \"steps\" in 0..2^53, got -3");
  state["steps"] = integers({3}, {});
  state["w.steps"] = integers({-1}, {});
  CHECK_REFUSED(optimizer.load_state(state), "expected \"w.steps\" in 0..2^53, got -1");
}

TEST_CASE("misuse: half of a frozen parameter's state") {
  Model model;
  nn::AdamW optimizer(model.parameters(), {});
  nn::NamedTensors state = optimizer.state();
  state.erase("gate.moment2");
  model.own("gate").frozen() = true;
  CHECK_REFUSED(optimizer.load_state(state), "1 missing: gate.moment2");
  state.erase("gate.moment1");
  CHECK_NOTHROW(optimizer.load_state(state));
}
