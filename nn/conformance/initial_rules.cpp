// Rules about a network before training.
#include <cmath>

#include "autograd/backward.h"
#include "autograd/ops.h"
#include "nn/audit.h"
#include "nn/conformance/networks.h"
#include "nn/conformance/rules.h"
#include "nn/optim/optimizer.h"

namespace plumb::nn::rules {
namespace {

struct Found {
  bool holds;
  std::string measure;
};

Found identity_at_init(const MethodChoice& method) {
  const auto stack = make_stack(method);
  double changed = 0;
  std::vector<Handle> watch;
  for (auto& block : stack->blocks())
    watch.push_back(block.observe(
        [&](const JunctionPass& j) { changed = worse(changed, largest_difference({j.output}, {j.before.x})); }));
  (*stack)(stream());
  return {changed == 0, fmt::format("a block changes its input by {:.1e}", changed)};
}

Found zero_branch_gradient(const MethodChoice& method) {
  const auto model = make_vit(method);
  const Gradients g = backward(cross_entropy((*model)(images()), labels()));
  double most = 0;
  for (const auto& junction : model->blocks().front().junctions())
    for (WeightLayer* layer : junction->branch().weight_layers())
      if (const Tensor d = g.find(layer->own("weight").value); d.defined()) most = worse(most, largest(d));
  return {most == 0, most == 0 && method->paper.zero_head ? "not measurable: the head starts at 0"
                                                          : fmt::format("largest gradient {:.1e}", most)};
}

Found loss_is_log_classes(const MethodChoice& method) {
  const NoGrad no_grad;
  const double loss = cross_entropy((*make_vit(method))(images()), labels()).item(),
               expected = std::log(static_cast<double>(classes));
  return {std::abs(loss - expected) < 1e-12, fmt::format("loss {:.6f}, ln({}) = {:.6f}", loss, classes, expected)};
}

Found measure(InitProperty property, const MethodChoice& method) {
  if (property == InitProperty::identity_at_init) return identity_at_init(method);
  if (property == InitProperty::zero_branch_gradient) return zero_branch_gradient(method);
  return loss_is_log_classes(method);
}

}  // namespace

Outcome claim(InitProperty property, const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  const Found found = measure(property, method);
  const bool claimed = method->claims_that(property);
  return {found.holds || !claimed, found.measure + (claimed ? "" : "; not claimed")};
}

// Checks that the initial values are as declared, also after passes that must not change parameters. A training pass
// may change statistics and counters.
Outcome initial_values(const MethodChoice& method) {
  const auto model = make_vit(method, 7);
  std::vector<std::pair<Tensor, Tensor>> measured;
  for (const Parameter& p : model->parameters())
    if (is_measured(p.role)) measured.emplace_back(p.value, p.value.detach() + 0.0);
  AdamW optimizer(model->parameters(), {.lr = 0});
  optimizer.step_own(
      backward(cross_entropy((*model)(images()), labels())));  // the rule "registered" reports other variables
  for (const auto& [value, initial] : measured) copy_into(initial.array(), value.array());
  audit_init(*model, 7);
  return {true, "as declared"};
}

}  // namespace plumb::nn::rules
