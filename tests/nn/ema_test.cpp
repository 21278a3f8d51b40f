#include "nn/optim/ema.h"

#include "autograd/node.h"
#include "nn/nn.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Model : nn::Module {
  Model() : Module("Model") {}
  Tensor w = parameter("w", tensor({1, -2, 3}, {3}), Role::weight);
  void set(double a) { copy_into(array_from(std::vector<double>{a, 2 * a, -a}, {3}, w.dtype(), w.device()), w.array()); }
};

}  // namespace

TEST_CASE("the average follows its equation, with and without warm-up of the decay") {
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const bool warm_up : {false, true}) {
      const DefaultsScope scope(where);
      Model model;
      nn::Ema ema(model.parameters(), {.decay = 0.3, .warm_up = warm_up});
      double average = 1;
      for (int t = 0; t < 6; ++t) {
        model.set(t);
        ema.update();
        const double decay = warm_up ? std::min(0.3, (1.0 + t) / (10 + t)) : 0.3;
        average = decay * average + (1 - decay) * t;
      }
      const nn::EmaScope scope_of_averages(ema);
      CHECK(model.w.values()[0] == Approx(average).epsilon(1e-6));
    }
}

TEST_CASE("a scope evaluates with the averages and puts the weights back") {
  const DefaultsScope scope(reference_f64);
  Model model;
  nn::Ema ema(model.parameters(), {.decay = 0.5});
  model.set(3);
  ema.update();
  {
    const nn::EmaScope averaged(ema);
    CHECK(model.w.values() == std::vector<double>{2, 2, 0});
    CHECK_THAT(error_of([&] { ema.update(); }), contains("[ema] expected update() with the weights in place"));
    CHECK_THAT(error_of([&] { ema.state(); }), contains("[ema] expected state with the weights in place"));
  }
  CHECK(model.w.values() == std::vector<double>{3, 6, -3});
  CHECK(ema.updates() == 1);
  const Tensor loss = sum(model.w * model.w);
  ema.swap();
  CHECK_THAT(error_of([&] { (void)backward(loss); }), contains("changed"));
  ema.swap();
  CHECK_THAT(error_of([&] { nn::Ema(model.parameters(), {.decay = 1.5}); }), contains("a decay in 0..1, got 1.5"));
}

TEST_CASE("an average that is saved and loaded continues to the bit") {
  const DefaultsScope scope(cpu_f32);
  Model one, two;
  nn::Ema a(one.parameters(), {.decay = 0.9, .warm_up = true}), b(two.parameters(), {.decay = 0.9, .warm_up = true});
  for (int t = 0; t < 3; ++t) {
    one.set(0.1 * t);
    a.update();
  }
  const nn::NamedTensors state = a.state();
  CHECK(state.size() == 2);
  b.load_state(state);
  CHECK(b.updates() == 3);
  one.set(0.7), two.set(0.7);
  a.update(), b.update();
  CHECK(a.state().at("w.average").values() == b.state().at("w.average").values());
  CHECK(a.state().at("w.average").values() != state.at("w.average").values());
  CHECK_THAT(error_of([&] { b.load_state({{"w.average", zeros({3})}}); }), contains("[ema] load_state: ") && contains("1 missing: updates"));
  const std::vector<double> average = b.state().at("w.average").values();
  CHECK(error_of([&] {
          b.load_state({{"w.average", zeros({3})}, {"updates", integers({-2}, {})}});
        }) == "[ema] load_state: expected \"updates\" of at least 0, got -2");
  CHECK(b.state().at("w.average").values() == average);
  std::vector<nn::Parameter> twice = one.parameters();
  twice.push_back(twice[0]);
  CHECK_THAT(error_of([&] { nn::Ema(twice, {}).state(); }), contains("got two named w"));
}
