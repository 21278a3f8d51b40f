#include "nn/models/deep_mlp.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::DeepMlpOptions small_mlp(const std::string& method) {
  return {.inputs = 12, .width = 6, .depth = 3, .classes = 4, .method = method, .seed = 5};
}

Tensor value_of(const nn::Module& m, const std::string& name) {
  for (const nn::Parameter& p : m.parameters())
    if (p.name == name) return p.value;
  FAIL("no parameter " << name);
  return {};
}

double deviation_of(const Tensor& x) {
  const double m = mean(x).item();
  return std::sqrt(mean((x - m) * (x - m)).item());
}

}  // namespace

TEST_CASE("each deep MLP computes its formula") {
  const DefaultsScope scope(reference_f64);
  const Tensor x = random_normal({5, 3, 2, 2}, 0, "x");
  for (const std::string& method : nn::deep_mlp_methods()) {
    INFO(method);
    nn::DeepMlp model(small_mlp(method));
    // An alpha of 0 would hide the layer that alpha multiplies.
    model.each_parameter([](const std::string& name, nn::Parameter& p) {
      if (name.ends_with("alpha") || name.starts_with("norm"))
        copy_into((random_normal(p.value.shape(), 1, name) + 0.5).array(), p.value.array());
    });
    const auto p = [&](const std::string& name) { return value_of(model, name); };
    Tensor h = relu(linear(reshape(x, {5, 12}), p("first.weight"), p("first.bias")));
    for (int i = 0; i < 3; ++i) {
      const std::string layer = fmt::format("hidden.{}.", i);
      const Tensor f = relu(linear(h, p(layer + "linear.weight"), p(layer + "linear.bias")));
      h = method == "vanilla"      ? f
          : method == "residual"   ? h + f
          : method == "layer_norm" ? layer_norm(f, p("norm.weight"), p("norm.bias"), 1e-5)
                                   : h + p(layer + "gate.alpha") * f;
    }
    const Tensor logits = linear(h, p("last.weight"), p("last.bias"));
    CHECK(relative_error(model(x), logits) < 1e-12);
    CHECK(relative_error(model.hidden(model.first(x)), h) < 1e-12);
    const Tensor labels = integers({0, 1, 2, 3, 0}, {5});
    const Gradients g = backward(cross_entropy(model(x), labels)), expected = backward(cross_entropy(logits, labels));
    CHECK(g.entries().size() == model.parameters().size());
    for (const nn::Parameter& parameter : model.parameters())
      CHECK(relative_error(g.find(parameter.value), expected.find(parameter.value)) < 1e-12);
  }
}

TEST_CASE("the deep MLPs start from the distributions that they declare") {
  for (const std::string& method : nn::deep_mlp_methods()) {
    INFO(method);
    const nn::DeepMlp model({.inputs = 400, .width = 200, .depth = 2, .classes = 100, .method = method});
    const double gain = method == "residual" ? 0.5 : std::sqrt(2.0);
    CHECK(deviation_of(value_of(model, "first.weight")) ==
          Approx(std::sqrt(2.0 / 400)).epsilon(0.02));  // the std of He's distribution
    CHECK(deviation_of(value_of(model, "hidden.1.linear.weight")) == Approx(gain / std::sqrt(200.0)).epsilon(0.02));
    for (const auto& [name, bound] :
         {std::pair("last.weight", 1 / std::sqrt(200.0)), std::pair("hidden.0.linear.bias", 1 / std::sqrt(200.0)),
          std::pair("first.bias", 0.05), std::pair("last.bias", 1 / std::sqrt(200.0))}) {
      INFO(name);
      double largest = 0;
      for (double v : value_of(model, name).values()) largest = std::max(largest, std::abs(v));
      CHECK(largest <= bound);
      CHECK(largest > 0.9 * bound);
      CHECK(deviation_of(value_of(model, name)) == Approx(bound / std::sqrt(3.0)).epsilon(0.2));
    }
  }
}

TEST_CASE("Xavier's normal and the uniform init follow their formulas and reject wrong arguments") {
  struct Two : nn::Module {
    Two() : Module("Two") { nn::initialize(*this, 0); }
    Tensor wide = parameter("wide", {100, 300}, nn::Init::xavier_normal(3), Role::weight);
    Tensor flat = parameter("flat", {1000}, nn::Init::uniform(0.25).scaled(2), Role::bias);
  } two;
  CHECK(mean(two.wide).item() == Approx(0).margin(0.005));
  CHECK(deviation_of(two.wide) == Approx(3 * std::sqrt(2.0 / 400)).epsilon(0.02));
  double largest = 0, beyond_two = 0;
  for (double v : two.flat.values()) largest = std::max(largest, std::abs(v));
  CHECK(largest <= 0.5);
  CHECK(largest > 0.49);
  const double deviation = deviation_of(two.wide);
  for (double v : two.wide.values()) beyond_two += std::abs(v) > 2 * deviation;
  // The expected share is that of a normal distribution; a uniform distribution has another share.
  CHECK(beyond_two / 30000 == Approx(0.0455).epsilon(0.1));
  CHECK(nn::Init::xavier_normal(2).description() == "xavier_normal * 2");
  CHECK(nn::Init::uniform(0.5).description() == "uniform(0.5)");
  CHECK_THAT(error_of([] { nn::Init::xavier_normal(0); }),
             contains("[init] expected a gain above 0 and at least one part, got 0 and 1"));
  CHECK_THAT(error_of([] { nn::Init::uniform(-1); }), contains("[init] expected a finite bound above 0, got -1"));
}

TEST_CASE("a deep MLP rejects wrong options and inputs") {
  CHECK_THAT(error_of([] { nn::DeepMlp model({.method = "rezeno"}); }),
             contains("[deep_mlp] expected one of the methods vanilla, residual, layer_norm, rezero, got \"rezeno\""));
  CHECK_THAT(error_of([] { nn::DeepMlp model({.depth = 0}); }),
             contains("expected positive inputs, width, depth and classes, got 3072, 256, 0 and 10"));
  const nn::DeepMlp model(small_mlp("vanilla"));
  CHECK_THAT(error_of([&] {
               model(zeros({2, 3, 3}));
             }),
             contains("[deep_mlp] expected samples [B, ..] of 12 elements, got [2, 3, 3]"));
}
