// Rules about the parameters of gates.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "autograd/backward.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/names.h"
#include "core/random_scope.h"
#include "nn/conformance/networks.h"
#include "nn/conformance/rules.h"
#include "nn/io/weights.h"
#include "nn/optim/optimizer.h"

namespace plumb::nn::rules {
namespace {

// Returns the parameters of the gates: the parameters of the blocks that do not belong to a branch or to the norm of a
// junction.
std::vector<Parameter> gate_parameters(const Stack& stack) {
  std::set<const Node*> others;
  const auto leave_out = [&](const Module& module) {
    for (const Parameter& p : module.parameters()) others.insert(p.value.node().get());
  };
  for (const Junction* junction : stack.junctions()) {
    leave_out(junction->branch());
    if (const Layer* const norm = junction->norm_layer()) leave_out(*norm);
  }
  std::vector<Parameter> of_gates;
  for (const Parameter& p : stack.parameters())
    if (p.name.starts_with("blocks.") && !others.contains(p.value.node().get())) of_gates.push_back(p);
  return of_gates;
}

}  // namespace

Outcome roles(const MethodChoice& method) {
  const auto stack = make_stack(method);
  std::vector<std::string> decaying;
  std::size_t count = 0;
  for (const Parameter& p : gate_parameters(*stack)) {
    if (is_measured(p.role)) continue;
    ++count;
    if (p.decay_factor() != 0)
      decaying.push_back(
          fmt::format("{} (role {}) has decay factor {:g}", p.name, enum_name(p.role), p.decay_factor()));
  }
  return {decaying.empty(),
          decaying.empty()
              ? fmt::format("{} tensors without decay", count)
              : fmt::format(
                    "{}: weight decay would pull the gate to 0; register it with Role::gate, or set its decay_factor "
                    "to 0 (own(), each_parameter())",
                    some_of(decaying))};
}

std::vector<std::string> unmoved(const Module& model, const std::function<Tensor()>& loss) {
  std::map<std::string, std::vector<double>> before;
  for (const Parameter& p : model.parameters()) before[p.name] = p.value.values();
  AdamW optimizer(model.parameters(), {.lr = 1e-2, .weight_decay = 0});
  const std::uint32_t first = random_state().step;
  for (std::uint32_t step = 0; step < 5; ++step) {
    const RandomScope random({.seed = 1, .step = first + step});
    optimizer.step_own(backward(loss()));  // the rule "registered" reports other variables
  }
  std::vector<std::string> still;
  for (const Parameter& p : model.parameters())
    if (!is_measured(p.role) && p.value.values() == before[p.name]) still.push_back(p.name);
  return still;
}

Outcome learning(const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  const auto model = make_vit(method);
  calibrate(*model, images());
  const std::vector<std::string> still = unmoved(*model, [&] { return cross_entropy((*model)(images()), labels()); });
  return {still.empty(),
          still.empty() ? "5 steps move every parameter" : fmt::format("5 steps do not move {}", some_of(still))};
}

Outcome save_and_load(const MethodChoice& method) {
  const auto model = make_vit(method, 1), other = make_vit(method, 2);
  shake(*model);
  calibrate(*model, images());
  const auto file =
      std::filesystem::temp_directory_path() /
      fmt::format("plumb_method_check.{}.{}.safetensors", getpid(), static_cast<const void*>(model.get()));
  struct Removed {
    const std::filesystem::path& path;
    ~Removed() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } const removed{file};
  save_weights(*model, file);
  load_weights(*other, file);
  model->eval();
  other->eval();
  const double gap = largest_difference({(*other)(images())}, {(*model)(images())});
  return {gap == 0,
          gap == 0 ? "the same outputs"
                   : fmt::format("outputs differ by {:.1e}: does the gate have state that is not a parameter?", gap)};
}

}  // namespace plumb::nn::rules
