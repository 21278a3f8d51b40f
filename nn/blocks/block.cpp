#include "nn/blocks/block.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace plumb::nn {

Block::Block(const BlockOptions& o) : Layer("Block"), method_(o.method) {
  check(!o.junctions.empty(), "[block] expected at least one junction, got none");
  const Recipe recipe = recipe_of(*o.method, o.recipe);
  const auto count = std::ssize(o.junctions);
  std::vector<std::unique_ptr<Branch>> branches;
  const JunctionPlace place{.dim = o.dim,
                            .layout = o.layout,
                            .block = o.block,
                            .blocks = o.blocks,
                            .junctions = count,
                            .weights = recipe.base};
  GateContext context{place};
  context.norm_eps = o.norm_eps;
  context.constants = o.method->values();
  if (o.steps) context.steps = o.steps;
  for (const BranchChoice& choice : o.junctions) {
    branches.push_back(choice.make(context.at(std::ssize(branches))));
    check(branches.back() != nullptr, "[block] expected a branch for the junction \"{}\", got null", choice.name);
    context.branches.push_back(branches.back()->shape());
    context.branches.back().name = choice.name;
  }
  gates_ = o.method->build(context);
  check(std::ssize(gates_.gates) == count && std::ranges::find(gates_.gates, nullptr) == gates_.gates.end(),
        "[block] expected method \"{}\" to build a gate for each of {} branches, got {}", method_->name, count,
        std::ranges::count_if(gates_.gates, [](const Gate* gate) { return gate != nullptr; }));
  for (const auto& [name, module] : gates_.modules)
    check(module != nullptr, "[block] expected method \"{}\" to build modules, got null for \"{}\"", method_->name,
          name);
  for (const Gate* gate : gates_.gates)
    check(std::ranges::any_of(gates_.modules, [&](const auto& m) { return m.second.get() == gate; }),
          "[block] expected method \"{}\" to list its gates in BlockGates::modules, got a gate that is not there; "
          "build gates with add()",
          method_->name);
  const Norm norm = gates_.norm.value_or(method_->norm);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    junctions_.push_back(std::make_unique<Junction>(
        JunctionOptions{.name = o.junctions[at].name,
                        .branch = std::move(branches[at]),
                        .gate = gates_.gates[at],
                        .norm = norm,
                        .norm_layer = norm == Norm::none ? nullptr : method_->make_norm(o.layout, o.dim, o.norm_eps),
                        .place = context.at(i),
                        .drop_path = o.drop_path,
                        .drop_path_form = o.drop_path_form}));
  }
  const auto numbered = [](const char* name, const auto& junction) {
    return fmt::format("{}{}", name, junction->place().junction + 1);
  };
  for (const auto& junction : junctions_)
    if (Layer* const layer = junction->norm_layer()) child(numbered("norm", junction), *layer);
  for (const auto& junction : junctions_) child(junction->branch_name(), junction->branch());
  for (const auto& junction : junctions_) child(numbered("drop_path", junction), junction->drop_path());
  for (auto& [name, module] : gates_.modules) child(name, *module);
  for (std::size_t i = 0; i < junctions_.size(); ++i) gates_.gates[i]->init_branch(junctions_[i]->branch());
  for (const auto& junction : junctions_) junction->refuse_if_dead(*method_);
  each_parameter([&](const std::string&, Parameter& p) {
    if (p.role == Role::gate || p.role == Role::shift) p.lr_factor *= recipe.scalar_rate;
  });
  if (method_->adjust)
    each_parameter([&](const std::string& name, Parameter& p) { method_->adjust(context, name, p); });
  if (!o.steps && context.steps->needed())
    context.steps->attach(*this, parameter("training_step", {1}, Init::constant(0), Role::counter));
}

void Block::advance(Stream& s, const StackInputs& inputs) const {
  s.x = compute_with_hooks(s.x, [&](const Tensor& x) {
    s.x = x;  // a hook may have replaced x
    for (const auto& junction : junctions_) junction->advance(s, inputs);
    return s.x;
  });
}

Tensor Block::forward(const Tensor& x) const {
  Stream s = method_->open ? method_->open(x) : Stream{x};
  for (const auto& junction : junctions_) junction->advance(s, {});
  return method_->close ? method_->close(s, nullptr) : s.x;
}

Handle Block::observe(const Observer& observer) {
  auto handles = std::make_shared<std::vector<Handle>>();
  for (const auto& junction : junctions_) handles->push_back(junction->observe(observer));
  return Handle([handles] { handles->clear(); });
}

Branch& Block::branch(const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& junction : junctions_) {
    if (junction->branch_name() == wanted) return junction->branch();
    names.push_back(junction->branch_name());
  }
  fail(fmt::format("[block] expected one of the branches {}, got \"{}\"", fmt::join(names, ", "), wanted));
}

}  // namespace plumb::nn
