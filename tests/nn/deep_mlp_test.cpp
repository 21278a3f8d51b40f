#include "nn/models/deep_mlp.h"

#include <algorithm>
#include <cmath>

#include "plumb/plumb.h"
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
