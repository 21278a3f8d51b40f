#include "nn/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/backend.h"

namespace plumb::nn {

Optimizer::Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm)
    : parameters_(std::move(parameters)), lr_(std::move(lr)), weight_decay_(weight_decay), clip_norm_(clip_norm) {
  check(!parameters_.empty(), "[optimizer] expected at least one parameter, got none");
  check(weight_decay >= 0 && clip_norm >= 0, "[optimizer] expected weight decay and clip norm of at least 0, got {} and {}", weight_decay, clip_norm);
}

void Optimizer::step(const Gradients& gradients) {
  std::unordered_map<const Node*, const Tensor*> found;
  for (const Gradients::Entry& e : gradients.entries()) found[e.node.get()] = &e.gradient;
  for (const Parameter& p : parameters_)
    check(p.frozen || found.contains(p.value.node().get()),
          "[optimizer] expected a gradient for {} {}, got none: the loss does not depend on it; freeze() it before the optimizer is made if that is "
          "meant",
          p.name, p.value.shape());

  double scale = 1;
  if (clip_norm_ > 0) {  // the norm of what this optimizer moves
    double squares = 0;
    for (const Parameter& p : parameters_)
      if (!p.frozen) squares += kernels(p.value.array()).sum_of_squares(found.at(p.value.node().get())->array());
    scale = std::min(1.0, clip_norm_ / (std::sqrt(squares) + 1e-6));
  }
  const double lr = learning_rate();
  ++steps_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (p.frozen) continue;
    update({i, found.at(p.value.node().get())->array(), p.value.array(), lr * p.lr_factor, decays(p.role) ? weight_decay_ : 0, scale, steps_});
    p.value.array().bump_version();
  }
}

std::vector<ParameterGroup> Optimizer::groups() const {
  std::vector<ParameterGroup> groups;
  for (const Parameter& p : parameters_) {
    if (p.frozen) continue;
    const double decay = decays(p.role) ? weight_decay_ : 0;
    auto group = std::ranges::find_if(groups, [&](const ParameterGroup& g) { return g.lr_factor == p.lr_factor && g.weight_decay == decay; });
    if (group == groups.end()) group = groups.insert(groups.end(), ParameterGroup{p.lr_factor, decay, {}, 0});
    group->names.push_back(p.name);
    group->elements += p.value.numel();
  }
  std::ranges::sort(groups, std::ranges::greater{}, &ParameterGroup::elements);
  return groups;
}

std::string Optimizer::describe_groups() const {
  std::string text;
  for (const ParameterGroup& g : groups())
    text += fmt::format("lr x {:<4g} decay {:<5g} {:>6} tensors {:>10} elements, first {}\n", g.lr_factor, g.weight_decay, g.names.size(), g.elements,
                        g.names[0]);
  return text;
}

AdamW::AdamW(std::vector<Parameter> ps, const AdamWOptions& o) : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm), options_(o) {
  for (const Parameter& p : parameters()) {
    moment1_.push_back(full_like(p.value.array(), p.value.shape(), 0));
    moment2_.push_back(full_like(p.value.array(), p.value.shape(), 0));
  }
}

void AdamW::update(const Update& u) {
  const auto t = static_cast<double>(u.step);
  const AdamWStep step{.lr = u.lr,
                       .beta1 = options_.beta1,
                       .beta2 = options_.beta2,
                       .eps = options_.eps,
                       .weight_decay = u.weight_decay,
                       .correction1 = 1 - std::pow(options_.beta1, t),
                       .correction2 = 1 - std::pow(options_.beta2, t),
                       .gradient_scale = u.gradient_scale};
  kernels(u.parameter).adamw(step, u.gradient, u.parameter, moment1_[u.index], moment2_[u.index]);
}

Sgd::Sgd(std::vector<Parameter> ps, const SgdOptions& o) : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm), options_(o) {
  check(!o.nesterov || o.momentum > 0, "[sgd] expected momentum above 0 for Nesterov's form, got {}", o.momentum);
  for (const Parameter& p : parameters()) velocity_.push_back(o.momentum > 0 ? full_like(p.value.array(), p.value.shape(), 0) : Array());
}

void Sgd::update(const Update& u) {
  const SgdStep step{
      .lr = u.lr, .momentum = options_.momentum, .weight_decay = u.weight_decay, .nesterov = options_.nesterov, .gradient_scale = u.gradient_scale};
  kernels(u.parameter).sgd(step, u.gradient, u.parameter, velocity_[u.index]);
}

}  // namespace plumb::nn
