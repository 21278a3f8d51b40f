#include "nn/optim/ema.h"

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct OneWeight : nn::Module {
  OneWeight() : Module("Model") {}
  Tensor w = parameter("w", tensor({1, -2, 3}, {3}), Role::weight);
  void set(double a) {
    copy_into(array_from(std::vector<double>{a, 2 * a, -a}, {3}, w.dtype(), w.device()), w.array());
  }
};

}  // namespace

TEST_CASE("the average follows its equation, with and without warm-up of the decay") {
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const bool warm_up : {false, true}) {
      const DefaultsScope scope(where);
      OneWeight model;
      nn::Ema ema(model, {.decay = 0.3, .warm_up = warm_up});
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

TEST_CASE("an EmaScope evaluates with the averages and puts the weights back") {
  const DefaultsScope scope(reference_f64);
  OneWeight model;
  nn::Ema ema(model, {.decay = 0.5});
  model.set(3);
  ema.update();
  {
    const nn::EmaScope averaged(ema);
    CHECK(model.w.values() == std::vector<double>{2, 2, 0});
    CHECK_THAT(error_of([&] { ema.update(); }), contains("[ema] expected update() while the weights are in place"));
    CHECK_THAT(error_of([&] { ema.state(); }), contains("saved or loaded while the weights are in place"));
  }
  CHECK(model.w.values() == std::vector<double>{3, 6, -3});
  CHECK(ema.updates() == 1);
  const Tensor loss = sum(model.w * model.w);
  ema.swap();
  CHECK_THAT(error_of([&] { (void)backward(loss); }), contains("changed"));
  ema.swap();
  CHECK_THAT(error_of([&] { nn::Ema(model, {.decay = 1.5}); }), contains("a decay in 0..1, got 1.5"));
}

TEST_CASE("a saved and loaded average continues bit for bit") {
  const DefaultsScope scope(cpu_f32);
  OneWeight one, two;
  nn::Ema a(one, {.decay = 0.9, .warm_up = true}), b(two, {.decay = 0.9, .warm_up = true});
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
  CHECK_THAT(error_of([&] {
               b.load_state({{"w.average", zeros({3})}});
             }),
             contains("[ema] load_state: ") && contains("1 missing: updates"));
  const std::vector<double> average = b.state().at("w.average").values();
  CHECK(error_of([&] {
          b.load_state({{"w.average", zeros({3})}, {"updates", integers({-2}, {})}});
        }) == "[ema] load_state: expected \"updates\" in 0..2^53, got -2");
  CHECK(b.state().at("w.average").values() == average);
}

namespace {

// A model with a body and a head. A test can change the model after the construction of the Ema.
struct Headed : nn::Module {
  struct Part : nn::Module {
    Tensor w = parameter("w", tensor({1, 2}, {2}), Role::weight), b = parameter("b", tensor({3}, {1}), Role::bias);
  };
  void add_module() { late.emplace(this, "late"); }
  void replace_head() {
    own_of_head("w") = nn::Parameter("w", variable(tensor({5, 5, 5}, {3})), Role::weight, nn::Init::constant(5));
    own_of_head("b") = nn::Parameter("b", variable(tensor({5}, {1})), Role::bias, nn::Init::constant(5));
  }
  nn::Parameter& own_of_head(const std::string& name) { return head.own(name); }
  void set(double a) {
    for (const nn::Parameter& p : parameters())
      copy_into(full(p.value.shape(), a, {p.value.dtype(), p.value.device()}).array(), p.value.array());
  }
  nn::Child<Part> body{this, "body"}, head{this, "head"};
  std::optional<nn::Child<Part>> late;
};

std::vector<double> all_values(const nn::Module& model) {
  std::vector<double> all;
  for (const nn::Parameter& p : model.parameters())
    for (const double value : p.value.values()) all.push_back(value);
  return all;
}

}  // namespace

TEST_CASE("an average stays correct if parameters are frozen or unfrozen later") {
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const bool freeze : {true, false}) {
      CAPTURE(freeze);
      const DefaultsScope scope(where);
      Headed changed, plain;
      if (!freeze) changed.body.freeze();
      nn::Ema a(changed, {.decay = 0.5}), b(plain, {.decay = 0.5});
      changed.body.freeze(freeze);
      for (const double weight : {4, 7}) {
        changed.set(weight), plain.set(weight);
        a.update(), b.update();
      }
      const auto averaged = [](nn::Ema& ema, const nn::Module& model) {
        const nn::EmaScope averages(ema);
        return all_values(model);
      };
      CHECK(averaged(a, changed) == averaged(b, plain));
      CHECK(averaged(a, changed)[0] == 0.25 * 1 + 0.25 * 4 + 0.5 * 7);
      CHECK(all_values(changed) == std::vector<double>(6, 7));
      Headed loaded;
      loaded.set(7);
      nn::Ema c(loaded, {.decay = 0.5});
      loaded.head.freeze(freeze);
      c.load_state(a.state());
      CHECK(averaged(c, loaded) == averaged(a, changed));
    }
}

TEST_CASE("an average rejects a model with replaced, added or removed parameters and names them") {
  const DefaultsScope scope(reference_f64);
  const auto every_use_refused = [](nn::Ema& ema, const nn::Module& model, const nn::NamedTensors& state,
                                    const std::string& changes) {
    const std::string expected = "[ema] expected the parameters that Headed had when its average was made, got " +
                                 changes + "; make the average after the model is complete";
    const std::vector<double> before = all_values(model);
    CHECK(error_of([&] { ema.update(); }) == expected);
    CHECK(error_of([&] { ema.swap(); }) == expected);
    CHECK(error_of([&] { const nn::EmaScope averaged(ema); }) == expected);
    CHECK(error_of([&] { ema.state(); }) == expected);
    CHECK(error_of([&] { ema.load_state(state); }) == expected);
    CHECK((ema.updates() == 0 && !ema.swapped()));
    CHECK(all_values(model) == before);
  };
  {
    Headed model;
    nn::Ema ema(model, {.decay = 0.5});
    const nn::NamedTensors state = ema.state();
    model.replace_head();
    every_use_refused(ema, model, state, "2 replaced: head.w, head.b");
    model.add_module();
    every_use_refused(ema, model, state, "2 replaced: head.w, head.b; 2 added: late.w, late.b");
    nn::Ema fresh(model, {.decay = 0.5});
    model.set(7);
    fresh.update();
    CHECK(fresh.state().at("head.w.average").values() == std::vector<double>{6, 6, 6});
    CHECK_THAT(error_of([&] { fresh.load_state(state); }),
               contains("2 missing: late.b.average, late.w.average") && contains("head.w.average (expected"));
  }
  {
    Headed model;
    nn::Ema ema(model, {.decay = 0.5});
    const nn::NamedTensors state = ema.state();
    model.own_of_head("b") = nn::Parameter("bias", model.head.b, nn::Role::bias, nn::Init::constant(5));
    every_use_refused(ema, model, state, "1 added: head.bias; 1 removed: head.b");
  }
  {
    struct Short : nn::Module {
      nn::ChildPtr<Headed::Part> head{this, "head", std::make_unique<Headed::Part>()};
    } model;
    nn::Ema ema(model, {.decay = 0.5});
    model.head = {};
    CHECK_THAT(error_of([&] { ema.update(); }),
               contains("expected child \"head\" of Short to live as long as its parent"));
  }
}

TEST_CASE("an EmaScope in which the model changes puts back the weights that it took") {
  const DefaultsScope scope(reference_f64);
  Headed model;
  nn::Ema ema(model, {.decay = 0.5});
  model.set(7);
  {
    const nn::EmaScope averaged(ema);
    CHECK(model.body.w.values() == std::vector<double>{1, 2});
    model.add_module();
  }
  CHECK(model.body.w.values() == std::vector<double>{7, 7});
  CHECK_THAT(error_of([&] { ema.update(); }), contains("2 added: late.w, late.b"));
}

TEST_CASE("a parameter with two names cannot be averaged because swap() would exchange it twice") {
  const DefaultsScope scope(reference_f64);
  Headed model;
  model.own_of_head("w") = model.body.own("w");
  CHECK(error_of([&] { nn::Ema(model, {}); }) ==
        "[ema] expected each parameter once, got the same one as body.w and head.w");
}
