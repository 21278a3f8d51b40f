// Mistakes with modules: initial values, registration, hooks, dropout.
#include <memory>

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Two linear layers, side by side, that are created without initialize().
struct Two : nn::Layer {
  nn::Child<nn::Linear> a{this, "a", {.in = 2, .out = 2}}, b{this, "b", {.in = 2, .out = 2}};
  Tensor forward(const Tensor& x) const override { return a(x) + b(x); }
};

// A module to which a test can add any registration.
struct Open : nn::Layer {
  Open() = default;
  explicit Open(std::function<Tensor(const Tensor&)> function) : f(std::move(function)) {}
  using Module::parameter;
  Tensor forward(const Tensor& x) const override { return f(x); }
  std::function<Tensor(const Tensor&)> f = [](const Tensor& x) { return x; };
};

}  // namespace

TEST_CASE("misuse: a layer used without initialize()") {
  const nn::Linear linear({.in = 2, .out = 2});
  CHECK_REFUSED(linear(ones({1, 2})),
                "[Linear] expected initialised parameters, got weight as it was declared: call nn::initialize(model, "
                "seed) when the model is complete");
}

TEST_CASE("misuse: a model used without initialize()") {
  Two two;
  CHECK_REFUSED(
      two(ones({1, 2})),
      "[Two] expected initialised parameters, got a.weight and 1 more as they were declared: call nn::initialize");
  nn::initialize(two, 0);
  CHECK_NOTHROW(two(ones({1, 2})));
  CHECK(two.a.weight().values() != two.b.weight().values());
}

TEST_CASE("misuse: a submodule used before initialize()") {
  Two two;
  CHECK_REFUSED(two.a(ones({1, 2})), "[Two.a] expected initialised parameters, got weight");
}

TEST_CASE("misuse: a module added after initialize()") {
  const Two loose;
  Open model([&](const Tensor& x) { return loose(x); });
  nn::initialize(model, 0);
  CHECK_REFUSED(model(ones({1, 2})),
                "[Two] expected initialised parameters, got a.weight and 1 more as they were declared: call "
                "nn::initialize(model, seed) when the model is complete, or load its weights. If you did, make this "
                "module an nn::Child of its parent");
  nn::Child<Two> two(&model, "two");
  model.f = [&](const Tensor& x) { return two(x); };
  CHECK_REFUSED(model(ones({1, 2})), "[Open] expected initialised parameters, got two.a.weight");
  nn::initialize(model, 0);
  CHECK_NOTHROW(model(ones({1, 2})));
  nn::Child<nn::Linear> late{&model, "late", {.in = 2, .out = 2}};
  CHECK_REFUSED(model(ones({1, 2})), "got late.weight as it was declared");
}

TEST_CASE("misuse: an Init that was changed and never filled in") {
  Open model;
  model.parameter("scale", {2}, nn::Init::constant(1), nn::Role::gate);
  CHECK_NOTHROW(model(ones({1})));
  Open changed;
  changed.parameter("scale", {2}, nn::Init::constant(1), nn::Role::gate);
  changed.own("scale").init = nn::Init::constant(0.5);
  CHECK_REFUSED(changed(ones({1})), "[Open] expected initialised parameters, got scale as it was declared");
}

TEST_CASE("misuse: loaded weights need no initialize() but missing ones do") {
  const test::TemporaryFolder folder;
  Two saved;
  nn::initialize(saved, 3);
  nn::save_weights(saved, folder / "weights");
  Two loaded;
  nn::load_weights(loaded, folder / "weights");
  CHECK(loaded(ones({1, 2})).values() == saved(ones({1, 2})).values());
  Open bigger;
  nn::Child<Two> part(&bigger, "");
  nn::Child<nn::Linear> more{&bigger, "c", {.in = 2, .out = 2}};
  nn::load_weights(bigger, folder / "weights", {}, {.allow_missing = true});
  CHECK_REFUSED(bigger(ones({1, 2})), "got c.weight as it was declared");
}

TEST_CASE("misuse: a name that is repeated or empty or has a dot") {
  Open model;
  nn::Child<nn::LayerNorm> a(&model, "a", 1);
  CHECK_REFUSED(nn::Child<nn::LayerNorm>(&model, "a", 1),
                "[module] expected a new name in Open, got \"a\", which is taken");
  CHECK_REFUSED(nn::Child<nn::LayerNorm>(&model, "b.c", 1), "expected a child name without dots, got \"b.c\"");
  CHECK_REFUSED(model.parameter("a", {1}, nn::Init::constant(0), nn::Role::gate),
                "expected a new name in Open, got \"a\", which is taken");
  CHECK_REFUSED(model.parameter("a.b", {1}, nn::Init::constant(0), nn::Role::gate),
                "expected a parameter name without dots, got \"a.b\"");
  CHECK_REFUSED(model.parameter("", {1}, nn::Init::constant(0), nn::Role::gate),
                "expected a parameter name without dots, got \"\"");
}

TEST_CASE("misuse: a module registered twice") {
  Open model;
  CHECK_REFUSED(nn::ChildPtr<nn::Layer>(&model, "b", std::make_unique<nn::Child<nn::LayerNorm>>(&model, "a", 1)),
                "[module] expected a module without a parent for Open.b, got Open.a");
}

TEST_CASE("misuse: a module that contains itself") {
  auto outer = std::make_unique<Open>();
  nn::Child<Open> inner(outer.get(), "inner");
  const char* const message =
      "[module] expected a module that does not contain Open.inner for Open.inner.outer, got Open, which contains it";
  CHECK_REFUSED(nn::ChildPtr<nn::Layer>(&inner, "outer", std::move(outer)), message);
  auto own = std::make_unique<Open>();
  Open* const parent = own.get();
  CHECK_REFUSED(nn::ChildPtr<nn::Layer>(parent, "own", std::move(own)), "[module] expected a module that does not");
}

TEST_CASE("misuse: a child that is a local variable") {
  Open model;
  { nn::Child<nn::LayerNorm> local(&model, "fc", 1); }
  const char* const message =
      "[module] expected child \"fc\" of Open to live as long as its parent, got a destroyed module: an nn::Child must "
      "be a member, not a local variable";
  CHECK_REFUSED(model.parameters(), message);
  CHECK_REFUSED(model(ones({1})), message);
  CHECK_REFUSED(model.eval(), message);
}

TEST_CASE("misuse: a parent that is destroyed before its child leaves it a root") {
  auto parent = std::make_unique<Open>();
  nn::Child<nn::LayerNorm> child(parent.get(), "fc", 1);
  CHECK(*child.path() == "Open.fc");
  parent = nullptr;
  CHECK(child.parameters().size() == 2);
}

TEST_CASE("misuse: a parameter that starts undefined or as integers") {
  Open model;
  CHECK_REFUSED(model.parameter("w", Tensor(), nn::Role::weight),
                "[module] expected initial values in f32 or f64 for Open.w, got an undefined tensor");
  CHECK_REFUSED(model.parameter("w", integers({1}, {1}), nn::Role::weight),
                "[module] expected initial values in f32 or f64 for Open.w, got i64 [1]");
}

TEST_CASE("misuse: a parameter made of a constant") {
  CHECK_REFUSED(nn::Parameter("w", ones({2}), nn::Role::weight, nn::Init::constant(1)),
                "[parameter] expected a variable for w, got f32 [2]");
}

TEST_CASE("misuse: non-finite factors and initial values") {
  Open model;
  CHECK_REFUSED(model.parameter("w", {1}, nn::Init::constant(1), nn::Role::weight, not_a_number),
                "[module] expected finite factors of at least 0 for Open.w, got nan for the learning rate");
  CHECK_REFUSED(model.parameter("w", {1}, nn::Init::constant(1), nn::Role::weight, -1),
                "of at least 0 for Open.w, got -1");
  CHECK_REFUSED(nn::Init::constant(not_a_number), "[init] expected a finite constant, got nan");
  CHECK_REFUSED(nn::Init::uniform(1 / 0.0), "[init] expected a finite bound above 0, got inf");
  CHECK_REFUSED(nn::Init::constant(1).scaled(not_a_number), "[init] expected a finite factor, got nan");
}

TEST_CASE("misuse: a layer that returns nothing") {
  const Open model([](const Tensor&) { return Tensor(); });
  CHECK_REFUSED(model(ones({1})), "[layer] expected forward() of Open to return a tensor, got an undefined tensor");
}

TEST_CASE("misuse: a forward hook that returns another shape or dtype or device") {
  const Open model;
  Handle hook = model.on_forward([](const nn::Layer&, const Tensor&, const Tensor& y) { return mean(y); });
  CHECK_REFUSED(model(ones({2, 3})),
                "[on_forward] expected a hook that returns f32 [2, 3], like the tensor it replaces, or an undefined "
                "tensor, got f32 []");
  hook = model.on_forward([](const nn::Layer&, const Tensor&, const Tensor& y) { return cast(y, DType::f64); });
  CHECK_REFUSED(model(ones({2, 3})), "got f64 [2, 3]");
  hook = model.on_forward([](const nn::Layer&, const Tensor&, const Tensor& y) { return ones(y.shape(), reference); });
  CHECK_REFUSED(model(ones({2, 3})), "got f32 [2, 3] on reference");
}

TEST_CASE("misuse: an input hook that returns another dtype or an unfit shape") {
  nn::Linear model({.in = 3, .out = 2});
  nn::initialize(model, 0);
  Handle hook = model.on_input([](const nn::Layer&, const Tensor& x) { return cast(x, DType::f64); });
  CHECK_REFUSED(model(ones({2, 3})),
                "[on_input] expected a hook that returns f32 [2, 3], of any shape, like the tensor it replaces, or an "
                "undefined tensor, "
                "got f64 [2, 3]");
  hook = model.on_input([](const nn::Layer&, const Tensor& x) { return slice(x, 1, 0, 2); });
  CHECK_REFUSED(model(ones({2, 3})), "[linear] expected input [.., 3] for weight [2, 3], got [2, 2]");
}

TEST_CASE("misuse: hooks and observers without a function") {
  const Open model;
  CHECK_REFUSED(model.on_forward({}), "[on_forward] expected a function to call, got an empty one");
  CHECK_REFUSED(model.on_input({}), "[on_input] expected a function to call");
  CHECK_REFUSED(model.on_backward({}), "[on_backward] expected a function to call");
  nn::ViT vit({.image = 8, .patch = 4, .channels = 1, .classes = 2, .dim = 4, .depth = 1, .heads = 2});
  CHECK_REFUSED(vit.blocks()[0].observe({}), "[observe] expected a function to call, got an empty one");
}

TEST_CASE("misuse: dropout layers in training mode without an open RandomScope") {
  const Tensor x = ones({2, 4, 4});
  nn::Dropout dropout(0.5);
  const nn::Dropout none(0);
  CHECK_REFUSED(dropout(x), "[dropout] expected an open RandomScope, got none");
  CHECK_NOTHROW(none(x));
  nn::DropPath path(0.5);
  CHECK_REFUSED(path(x), "[drop_path] expected an open RandomScope, got none");
  nn::Attention attention({.dim = 4, .heads = 2, .drop_head = {.rate = 0.5}}),
      keys({.dim = 4, .heads = 2, .drop_key = {.rate = 0.5}});
  nn::initialize(attention, 0), nn::initialize(keys, 0);
  CHECK_REFUSED(attention(x), "[drop_head] expected an open RandomScope, got none");
  CHECK_REFUSED(keys(x), "[attention_qkv] expected an open RandomScope, got none");
  CHECK_REFUSED(keys.drop_key_statistics(1, 4, 4), "[drop_key_statistics] expected an open RandomScope, got none");
  path.eval(), attention.eval(), keys.eval(), dropout.eval();
  CHECK_NOTHROW((path(x), attention(x), keys(x), dropout(x)));
  const RandomScope random({.seed = 0, .step = 0});
  path.train(), attention.train(), keys.train();
  CHECK_NOTHROW((path(x), attention(x), keys(x)));
}

TEST_CASE("misuse: a fully frozen model and a gradient of a frozen parameter") {
  nn::Linear model({.in = 2, .out = 1});
  nn::initialize(model, 0);
  model.freeze();
  CHECK_REFUSED(backward(sum(model(ones({1, 2})))),
                "got a constant: it was computed from no variable() and no parameter that is not frozen");
  CHECK_REFUSED(grad(sum(model(variable(ones({1, 2})))), model.weight()),
                "expected tensors that require a gradient, got a frozen parameter f32 [1, 2]");
  CHECK_REFUSED(model.weight().on_gradient([](const Tensor& g) { return g; }),
                "requires a gradient, got a frozen parameter");
}

TEST_CASE("misuse: an EmaScope inside an EmaScope and updates of swapped averages") {
  nn::Linear model({.in = 2, .out = 1});
  nn::initialize(model, 0);
  nn::Ema ema(model, {});
  const nn::EmaScope outer(ema);
  CHECK_REFUSED(nn::EmaScope(ema),
                "[ema] expected an EmaScope while the weights are in place, got one while the averages are");
  CHECK_REFUSED(ema.update(), "[ema] expected update() while the weights are in place");
}
