#include "nn/blocks/block.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace plumb::nn {

Block::Block(const StackOptions& o, std::int64_t index, const TrainingStep& step) : Layer("Block"), method_(o.method) {
  check(!o.junctions.empty(), "[block] expected at least one junction, got none");
  const Recipe recipe = recipe_of(*o.method, o.recipe);
  const auto count = std::ssize(o.junctions);
  std::vector<std::unique_ptr<Branch>> branches;
  const JunctionPlace place{
      .dim = o.dim, .layout = o.layout, .block = index, .blocks = o.depth, .junctions = count, .weights = recipe.base};
  GateContext context{place};
  context.norm_eps = o.norm_eps;
  context.constants = o.method->values();
  context.step_ = step;
  for (const BranchChoice& choice : o.junctions) {
    branches.push_back(choice.make(context.at(std::ssize(branches))));
    check(branches.back() != nullptr, "[block] expected a branch for the junction \"{}\", got null", choice.name);
    context.branches.push_back(branches.back()->shape());
    context.branches.back().name = choice.name;
  }
  BlockGates gates = o.method->build(context);
  check(std::ssize(gates.gates) == count && std::ranges::find(gates.gates, nullptr) == gates.gates.end(),
        "[block] expected method \"{}\" to build a gate for each of {} branches, got {}", method_->name, count,
        std::ranges::count_if(gates.gates, [](const Gate* gate) { return gate != nullptr; }));
  for (const auto& [name, module] : gates.modules)
    check(module != nullptr, "[block] expected method \"{}\" to build modules, got null for \"{}\"", method_->name,
          name);
  for (const Gate* gate : gates.gates)
    check(std::ranges::any_of(gates.modules, [&](const auto& m) { return m.second.get() == gate; }),
          "[block] expected method \"{}\" to list its gates in BlockGates::modules, got a gate that is not there; "
          "build gates with add()",
          method_->name);
  const Norm norm = gates.norm.value_or(method_->norm);
  std::vector<std::unique_ptr<Layer>> norms;
  std::vector<Junction::Parts> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    norms.push_back(norm == Norm::none ? nullptr : method_->make_norm(o.layout, o.dim, o.norm_eps));
    parts.push_back({.name = o.junctions[at].name, .gate = gates.gates[at], .norm = norm, .place = context.at(i)});
  }
  // The order of the children decides the order of the parameters.
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].norm_layer = {this, fmt::format("norm{}", i + 1), std::move(norms[i])};
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].branch = {this, parts[i].name, std::move(branches[i])};
  const double rate = rate_at(o.drop_path.schedule, o.drop_path.rate, index, o.depth);
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].drop_path = {this, fmt::format("drop_path{}", i + 1),
                          std::make_unique<DropPath>(rate, static_cast<std::uint32_t>(i), o.drop_path.form)};
  for (auto& [name, module] : gates.modules) gates_.emplace_back(this, name, std::move(module));
  for (Junction::Parts& p : parts) junctions_.push_back(std::unique_ptr<Junction>(new Junction(std::move(p))));
  for (std::size_t i = 0; i < junctions_.size(); ++i) gates.gates[i]->init_branch(junctions_[i]->branch());
  for (const auto& junction : junctions_) junction->refuse_if_dead(*method_);
  each_parameter([&](const std::string&, Parameter& p) {
    if (p.role == Role::gate || p.role == Role::shift) p.lr_factor() *= recipe.scalar_rate;
  });
  if (method_->adjust)
    each_parameter([&](const std::string& name, Parameter& p) { method_->adjust(context, name, p); });
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
