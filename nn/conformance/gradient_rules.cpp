// Rules about gradients.
#include <algorithm>
#include <set>

#include "autograd/backward.h"
#include "autograd/check_gradients.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/names.h"
#include "core/random_scope.h"
#include "nn/conformance/networks.h"
#include "nn/conformance/rules.h"

namespace plumb::nn::rules {

// Checks that every variable that gets a gradient is a parameter of the model. Optimizers, weight files and
// --list-gates use parameters only.
Outcome registered(const MethodChoice& method) {
  const auto model = make_vit(method);
  std::set<const Node*> known;
  for (const Parameter& p : model->parameters()) known.insert(p.value.node().get());
  const Gradients g = backward(cross_entropy((*model)(images()), labels()));
  std::vector<std::string> strangers;
  for (const Gradients::Entry& e : g.entries()) {
    if (known.contains(e.node.get())) continue;
    const std::string stranger = fmt::format(
        "{} {}", e.node->name.empty() ? "a tensor" : fmt::format("\"{}\"", e.node->name), e.gradient.shape());
    if (std::ranges::find(strangers, stranger) == strangers.end()) strangers.push_back(stranger);
  }
  if (strangers.empty())
    return {true, fmt::format("{} parameters get a gradient, and no other variable", g.entries().size())};
  return {false, fmt::format("a gradient goes to {}, which the model does not know: no optimizer would train it, and "
                             "no file would hold it. Make tensors with parameter(), and declare member modules as "
                             "nn::Child",
                             some_of(strangers))};
}

namespace {

Outcome gradients_of_order(const MethodChoice& method, CheckGradientsOptions options) {
  const DefaultsScope scope(f64_reference);
  const Shaken s(method, 2);
  return limited(check_gradients([&] { return s.output(); }, s.variables, options), options.tolerance);
}

}  // namespace

Outcome gradients(const MethodChoice& method, const std::vector<std::uint32_t>& steps) {
  Outcome outcome{};
  for (const std::uint32_t step : steps) {
    const RandomScope random({.seed = 1, .step = step});
    outcome = gradients_of_order(method, {.order = 1, .tolerance = 1e-6, .elements = 2, .directions = 2});
    if (step > 0) outcome.detail += fmt::format(" at step {}", step);
    if (!outcome.passed) break;
  }
  return outcome;
}
Outcome second_order(const MethodChoice& method) {
  return gradients_of_order(method, {.order = 2, .tolerance = 1e-5, .elements = 1, .directions = 1});
}

}  // namespace plumb::nn::rules
