#include "nn/child.h"
#include "plumb/plumb.h"

#include "nn/blocks/stack.h"
#include "nn/layers/dropout.h"
#include "nn/layers/norm.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// A module without a constructor.
struct PlainNet : nn::Layer {
  nn::Child<nn::Linear> hidden{this, "hidden", {.in = 2, .out = 3}};
  nn::Child<nn::Dropout> dropout{this, "dropout", 0.5};
  nn::Child<nn::Linear> out{this, "out", {.in = 3, .out = 1, .bias = false}};
  Tensor forward(const Tensor& x) const override { return out(dropout(relu(hidden(x)))); }
};

template <class T>
struct Holder : nn::Module {};

std::vector<std::string> names_in(const nn::Module& module) {
  std::vector<std::string> all;
  for (const nn::Parameter& p : module.parameters()) all.push_back(p.name);
  return all;
}

}  // namespace

TEST_CASE("children are registered in the order of the members and are used like their type") {
  PlainNet net;
  CHECK(names_in(net) == std::vector<std::string>{"hidden.weight", "hidden.bias", "out.weight"});
  CHECK(*net.hidden.path() == "PlainNet.hidden");
  nn::initialize(net, 0);
  net.eval();
  CHECK_FALSE(net.dropout.training());
  CHECK(net(ones({4, 2})).shape() == Shape{4, 1});
  // A conversion to the type.
  const nn::Linear& linear = net.hidden;
  CHECK(linear.weight().shape() == Shape{3, 2});
}

TEST_CASE("the default name of a module is the name of its class") {
  struct Local : nn::Module {};
  // The class is known only after its base classes are constructed.
  struct Base : nn::Layer {
    Base() { CHECK(*path() == "Base"); }
    Tensor forward(const Tensor& x) const override { return x; }
  };
  struct Derived : Base {
    nn::Child<Local> part{this, "part"};
  };
  CHECK(*PlainNet().path() == "PlainNet");
  CHECK(*Local().path() == "Local");
  CHECK(*[] { return Holder<std::pair<nn::Linear, int>>().path(); }() == "Holder<std::pair<plumb::nn::Linear, int> >");
  const Derived derived;
  CHECK(*derived.path() == "Derived");
  CHECK(*derived.part.path() == "Derived.part");
  CHECK(*nn::Linear({.in = 1, .out = 1}).path() == "Linear");
  struct Own : nn::Branch {
    Tensor forward(nn::BranchCall& call) const override { return call.leave(call.enter(relu)); }
  };
  struct Doubled : nn::ScaleGate {};
  CHECK(*Own().path() == "Own");
  CHECK(*Doubled().path() == "Doubled");
}

TEST_CASE("a path that was asked for early follows the module into its parent") {
  auto inner = nn::make<PlainNet>();
  CHECK(*inner->hidden.path() == "PlainNet.hidden");
  Holder<int> parent;
  const nn::ChildPtr<nn::Layer> child(&parent, "net", std::move(inner));
  CHECK(*dynamic_cast<PlainNet&>(*child).hidden.path() == "Holder<int>.net.hidden");
}

TEST_CASE("a ChildPtr holds a derived class or nothing") {
  struct Model : nn::Module {
    nn::ChildPtr<nn::Dropout> none, later;
    nn::ChildPtr<nn::Layer> layer{this, "layer", nn::make<nn::Linear>({.in = 1, .out = 1})};
    nn::ChildPtr<nn::Layer> null{this, "null", nullptr};
    Model() { later = {this, "later", nn::make<nn::Dropout>(0.1)}; }
  } model;
  CHECK((!model.none && !model.null && model.layer && model.later));
  CHECK(model.none.get() == nullptr);
  CHECK(*model.later->path() == "Model.later");
  CHECK(names_in(model) == std::vector<std::string>{"layer.weight", "layer.bias"});
}

TEST_CASE("a list of children numbers its elements and iterates over them") {
  struct Model : nn::Layer {
    nn::Children<nn::Layer> layers{this, "layers"};
    nn::Children<nn::Linear> heads{this, "heads"};
    Tensor forward(const Tensor& x) const override {
      Tensor h = x;
      for (const nn::Layer& layer : layers) h = layer(h);
      return h;
    }
  } model;
  // The list keeps its place among the children, whenever its elements are added.
  model.heads.add({.in = 2, .out = 1});
  nn::Linear& first = model.layers.add(nn::make<nn::Linear>({.in = 2, .out = 2}));
  model.layers.add(nn::make<nn::LayerNorm>(2));
  const nn::LinearOptions wide{.in = 2, .out = 3, .bias = false};
  model.heads.add(wide);
  CHECK(error_of([&] { model.layers.add(std::unique_ptr<nn::Linear>()); }) ==
        "[module] expected a module to add to Model.layers, got null");
  CHECK(error_of([&] { nn::Children<nn::Linear>(&model, ""); }) ==
        "[module] expected a name for a list of children of Model, got \"\"");
  CHECK(names_in(model) == std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                                    "layers.1.bias", "heads.0.weight", "heads.0.bias",
                                                    "heads.1.weight"});
  CHECK(&model.layers[0] == &first);
  CHECK(*model.layers[1].path() == "Model.layers.1");
  CHECK((model.layers.size() == 2 && !model.heads.empty()));
  CHECK((&model.heads.front() == &model.heads[0] && &model.heads.back() == &model.heads[1]));
  CHECK_THROWS_AS(model.heads[2], std::out_of_range);
  nn::initialize(model, 0);
  const Tensor x = random_normal({3, 2}, 0, "x");
  CHECK(model(x).values() == model.layers[1](first(x)).values());
  model.eval();
  CHECK_FALSE(model.heads[1].training());
}

TEST_CASE("a constructor that throws leaves no child in its parent") {
  struct Whole : nn::Module {
    nn::Child<nn::Linear> first{this, "first", {.in = 1, .out = 1}};
    nn::Children<nn::Layer> list{this, "list"};
    Whole() { list.add(nn::make<nn::Linear>({.in = 1, .out = 1})); }
  } model;
  struct Half : Whole {
    nn::ChildPtr<nn::Layer> last{this, "last", nn::make<nn::LayerNorm>(1)};
    Half() { throw Error("for a test"); }
  };
  const std::vector<std::string> before = names_in(model);
  CHECK(error_of([] { Half(); }) == "for a test");
  CHECK(error_of([&] { nn::Child<Half>(&model, "half"); }) == "for a test");
  struct List : nn::Module {
    nn::Children<Half> halves{this, "halves"};
  } list;
  CHECK(error_of([&] { list.halves.add(); }) == "for a test");
  CHECK((list.halves.empty() && names_in(list).empty()));
  // A name that is taken: the module was made, but is not registered.
  const std::string taken = "[module] expected a new name in Whole, got \"first\", which is taken";
  CHECK(error_of([&] { nn::Child<Whole>(&model, "first"); }) == taken);
  CHECK(error_of([&] { nn::ChildPtr<Whole>(&model, "first", nn::make<Whole>()); }) == taken);
  CHECK(error_of([&] { nn::Children<Whole>(&model, "first"); }) == taken);
  CHECK(names_in(model.list) == std::vector<std::string>{"0.weight", "0.bias"});
  CHECK(names_in(model) == before);
}

TEST_CASE("a child without a name must not be extended and its list of children keeps its name") {
  struct Inner : nn::Module {
    nn::Children<nn::LayerNorm> norms{this, "norms"};
    Inner() { norms.add(2); }
  };
  struct Outer : nn::Module {
    nn::Child<Inner> inner{this, ""};
  } outer;
  CHECK(names_in(outer) == std::vector<std::string>{"norms.0.weight", "norms.0.bias"});
  CHECK(error_of([&] { nn::Child<nn::LayerNorm>(&outer.inner, "late", 2); }) ==
        "[module] expected a child without a name to be complete when it is registered, got a later addition \"late\" "
        "to Outer");
  CHECK(error_of([&] { nn::Child<nn::LayerNorm>(&outer, "norms", 2); }) ==
        "[module] expected a new name in Outer, got \"norms\", which is taken");
}
