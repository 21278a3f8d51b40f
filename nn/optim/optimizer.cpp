#include "nn/optim/optimizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "autograd/node.h"
#include "core/backend.h"
#include "core/names.h"

namespace plumb::nn {
namespace {

void check_eps(const char* op, double eps) {
  check(std::isfinite(eps) && eps > 0, "[{}] expected an eps above 0, got {}", op, eps);
}

void check_moments(const char* op, double beta1, double beta2, double eps) {
  check(0 <= beta1 && beta1 < 1 && 0 <= beta2 && beta2 < 1, "[{}] expected beta1 and beta2 in [0, 1), got {} and {}",
        op, beta1, beta2);
  check_eps(op, eps);
}

// Returns the numbers of Adam's formula for the update `u`. AdamW and LAMB use this function.
template <class Options, class Update>
AdamWStep adam_step(const Options& o, const Update& u) {
  const auto t = static_cast<double>(u.step);
  return {.lr = u.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps * u.eps_factor,
          .weight_decay = u.weight_decay,
          .correction1 = 1 - std::pow(o.beta1, t),
          .correction2 = 1 - std::pow(o.beta2, t)};
}

template <class Options, class Update>
std::vector<AdamWUpdate> adam_updates(const Options& o, std::span<const Update> updates, std::span<const Out> moment1,
                                      std::span<const Out> moment2) {
  std::vector<AdamWUpdate> all;
  all.reserve(updates.size());
  for (const Update& u : updates)
    all.push_back({adam_step(o, u), u.gradient, u.parameter, moment1[u.index], moment2[u.index]});
  return all;
}

bool at_least_0(double x) { return std::isfinite(x) && x >= 0; }

void check_factors(const Parameter& p) {
  check(
      at_least_0(p.lr_factor()) && at_least_0(p.decay_factor()) && at_least_0(p.eps_factor()) && p.eps_factor() > 0,
      "[optimizer] expected finite factors for {}: at least 0 for learning rate and decay, above 0 for eps; got {}, {} "
      "and {}",
      p.name, p.lr_factor(), p.decay_factor(), p.eps_factor());
}

// Returns a description such as "scale [3]" or "a variable without a name [2, 2] made in Model.fc".
std::string described(const Node& variable) {
  return fmt::format("{} {}{}", variable.name.empty() ? "a variable without a name" : variable.name, variable.shape,
                     variable.path ? " made in " + *variable.path : "");
}

constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns the sum of the squares of all elements, as an f64 scalar on the device of `like`.
Array squares_of(const std::vector<Array>& arrays, const Array& like) {
  Array sum({}, DType::f64, like.device());
  if (arrays.empty())
    kernels(sum).fill(0, sum);
  else
    kernels(sum).sum_of_squares(arrays, sum);
  return sum;
}

[[noreturn]] void refuse_others(const Gradients& gradients, const std::vector<Parameter>& own) {
  constexpr std::size_t listed = 8;
  std::vector<std::string> others;
  for (const Gradients::Entry& e : gradients.entries())
    if (std::ranges::none_of(own, [&](const Parameter& p) { return p.value.node() == e.node; }))
      others.push_back(described(*e.node));
  const std::size_t count = others.size();
  others.resize(std::min(count, listed));
  fail(
      fmt::format("[optimizer] expected gradients of its own parameters only, got {} of other variables, which would "
                  "never train: {}{}; register them with parameter(), or their module as nn::Child, before calling "
                  "parameters(), or call "
                  "step_own() if another optimizer trains them",
                  count, fmt::join(others, ", "), count > listed ? ", .." : ""));
}

// Throws the error for gradients whose norm is not finite. gradients[i] is the gradient of parameters[i].
[[noreturn]] void refuse_not_finite(const std::vector<Array>& gradients,
                                    const std::vector<const Parameter*>& parameters) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!std::ranges::all_of(Tensor(gradients[i]).values(), [](double v) { return std::isfinite(v); }))
      names.push_back(parameters[i]->name);
  const std::string what =
      names.empty() ? "with a norm that f64 can hold, got a norm that overflows"
                    : fmt::format("without inf and NaN, got inf or NaN in the gradients of {}", some_of(names));
  fail(fmt::format(
      "[optimizer] expected gradients {}; nothing has changed. Skip this step, or use AnomalyMode to find the "
      "op that causes it",
      what));
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter> parameters, LearningRate lr, double weight_decay, double clip_norm)
    : parameters_(std::move(parameters)),
      lr_(std::move(lr)),
      weight_decay_(weight_decay),
      clip_norm_(clip_norm),
      updates_(parameters_.size()) {
  check(!parameters_.empty(),
        "[optimizer] expected at least one parameter, got none: register the parameters of a module with parameter(), "
        "and declare its member modules as nn::Child");
  std::unordered_map<const Node*, const std::string*> seen;
  const Tensor& first = parameters_[0].value;
  for (const Parameter& p : parameters_) {
    check(p.value.node() != nullptr, "[optimizer] expected variables, got a constant {} as {}", describe(p.value),
          p.name);
    const auto [entry, fresh] = seen.emplace(p.value.node().get(), &p.name);
    check(fresh, "[optimizer] expected each parameter once, got the same one as {} and {}", *entry->second, p.name);
    check(p.value.dtype() == first.dtype() && p.value.device() == first.device(),
          "[optimizer] expected parameters of one dtype on one device, got {} in {} on {} and {} in {} on {}: make a "
          "separate "
          "optimizer for each",
          parameters_[0].name, enum_name(first.dtype()), enum_name(first.device()), p.name, enum_name(p.value.dtype()),
          enum_name(p.value.device()));
    check_factors(p);
  }
  check(at_least_0(weight_decay) && at_least_0(clip_norm),
        "[optimizer] expected a finite weight decay and clip norm of at least 0, got {} and {}", weight_decay,
        clip_norm);
}

double StepReading::norm() const { return std::sqrt(state_.values()[3]); }

void Optimizer::step(const Gradients& gradients) { step(gradients, Others::refused, {}); }
void Optimizer::step_own(const Gradients& gradients) { step(gradients, Others::allowed, {}); }
StepReading Optimizer::step_while_finite(const Gradients& gradients) {
  state_ = step(gradients, Others::refused, gradients.loss_array());
  return StepReading(state_);
}

Array Optimizer::step(const Gradients& gradients, Others others, const Array& loss) {
  const PhaseScope phase("optimizer");
  take_arrived(loss.defined());
  std::unordered_map<const Node*, const Tensor*> found;
  for (const Gradients::Entry& e : gradients.entries())
    if (!found.emplace(e.node.get(), &e.gradient).second)
      fail(fmt::format("[optimizer] expected one gradient per variable, got two of {}", described(*e.node)));
  std::size_t own = 0;
  for (const Parameter& p : parameters_) {
    const auto entry = found.find(p.value.node().get());
    own += entry != found.end();
    check_factors(p);
    if (p.frozen()) continue;
    check(entry != found.end(),
          "[optimizer] expected a gradient for {} {}, got none: the loss does not depend on the parameter, or the "
          "parameter was "
          "frozen when the loss was computed. If this is intended, freeze() it",
          p.name, p.value.shape());
    const Tensor& gradient = *entry->second;
    if (gradient.dtype() != p.value.dtype() || gradient.device() != p.value.device() ||
        !(gradient.shape() == p.value.shape())) [[unlikely]]
      fail(fmt::format("[optimizer] expected a gradient {} for {}, got {}", describe(p.value), p.name,
                       describe(gradient)));
  }
  if (others == Others::refused && own < found.size()) refuse_others(gradients, parameters_);

  const double lr = learning_rate();
  check(at_least_0(lr),
        "[optimizer] expected a finite learning rate of at least 0 in step {}, got {}: check the schedule", steps_, lr);
  std::vector<Array> moved;
  std::vector<const Parameter*> movable;
  for (const Parameter& p : parameters_)
    if (!p.frozen()) moved.push_back(found.at(p.value.node().get())->array()), movable.push_back(&p);
  const Array& any = parameters_[0].value.array();
  // The norm includes the gradients of the parameters that this optimizer updates.
  const bool all = !moved.empty() && moved.size() == gradients.entries().size(), host = in_host_memory(any.device()),
             guarded = loss.defined();
  Array squares = all ? gradients.squared_norm() : squares_of(moved, any);
  if (host && !guarded && !std::isfinite(item(squares))) {
    squares = squares_of(moved, any);  // the caller may have repaired a gradient after the norm was computed
    if (!std::isfinite(item(squares))) refuse_not_finite(moved, movable);
  }
  Array state;
  if (guarded || clip_norm_ > 0 || !host) {
    state = Array({4}, DType::f64, any.device());
    const Array before = guarded ? state_ : pending_.empty() ? Array() : pending_.back().state;
    kernels(any).step_state(loss, squares, clip_norm_ > 0 ? clip_norm_ : infinity, before, state);
  }
  if (!host && !guarded) pending_.push_back({state, Readback(state), steps_, updates_});
  ++steps_;
  std::vector<Update> updates;
  updates.reserve(moved.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (p.frozen()) continue;
    for (auto& [name, memory] : memory_)
      if (!memory.arrays[i].defined()) memory.arrays[i] = fresh(memory, i);
    updates.push_back({.index = i,
                       .gradient = std::move(moved[updates.size()]),
                       .parameter = Out(p.value.array()),
                       .lr = lr * p.lr_factor(),
                       .weight_decay = weight_decay_ * p.decay_factor(),
                       .eps_factor = p.eps_factor(),
                       .step = ++updates_[i]});
  }
  if (!updates.empty()) update(updates, state);
  for (const Update& u : updates) u.parameter.bump_version();
  return state;
}

std::string Optimizer::describe_groups() const {
  struct Group {
    double lr_factor, weight_decay, eps_factor;
    bool frozen;
    std::string first;  // the name of the first parameter
    std::int64_t tensors = 0, elements = 0;
  };
  std::vector<Group> groups;
  for (const Parameter& p : parameters_) {
    const double decay = weight_decay_ * p.decay_factor();
    auto group = std::ranges::find_if(groups, [&](const Group& g) {
      return g.lr_factor == p.lr_factor() && g.weight_decay == decay && g.eps_factor == p.eps_factor() &&
             g.frozen == p.frozen();
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), Group{p.lr_factor(), decay, p.eps_factor(), p.frozen(), p.name});
    ++group->tensors;
    group->elements += p.value.numel();
  }
  std::ranges::sort(
      groups, [](const Group& a, const Group& b) { return a.frozen != b.frozen ? b.frozen : a.elements > b.elements; });
  std::string text;
  for (const Group& g : groups)
    text += fmt::format("lr x {:<4g} decay {:<5g}{} {:>6} tensors {:>10} elements, first {}{}\n", g.lr_factor,
                        g.weight_decay, g.eps_factor == 1 ? "" : fmt::format(" eps x {:<4g}", g.eps_factor), g.tensors,
                        g.elements, g.first, g.frozen ? ", frozen" : "");
  return text;
}

std::span<const Out> Optimizer::remembered(const std::string& name, double initial) {
  check(!memory_.contains(name),
        "[optimizer] expected a new name for the memory of the optimizer, got \"{}\", which is taken", name);
  Memory& memory = memory_[name] = {.arrays = std::vector<Out>(parameters_.size()), .initial = initial};
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!parameters_[i].frozen()) memory.arrays[i] = fresh(memory, i);
  return memory.arrays;
}

void Optimizer::take_arrived(bool wait) {
  for (; !pending_.empty() && (wait || pending_.front().reading.arrived()); pending_.pop_front()) {
    const Pending& first = pending_.front();
    if (first.reading.values()[1] != 0) continue;
    const std::int64_t bad = steps_ = first.steps, skipped = std::ssize(pending_) - 1;
    updates_ = first.updates;
    pending_.clear();
    fail(
        fmt::format("[optimizer] expected gradients without inf and NaN, with a norm that f64 can hold, got others in "
                    "step {}. Step {}{} changed nothing, and the next step is {} again. Use AnomalyMode to find the "
                    "op that causes it",
                    bad, bad, skipped > 0 ? fmt::format(" and the {} steps after it", skipped) : "", bad));
  }
}

NamedTensors Optimizer::state() {
  check_finite();
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    bool any = memory_.empty();
    for (const auto& [name, memory] : memory_)
      if (memory.arrays[i].defined()) {
        any = true;
        check(state.emplace(parameters_[i].name + "." + name, Tensor(memory.arrays[i])).second,
              "[optimizer] expected parameters with different names to save its state, got two named {}",
              parameters_[i].name);
      }
    if (any && updates_[i] != steps_) state[parameters_[i].name + ".steps"] = integers({updates_[i]}, {});
  }
  state["steps"] = integers({steps_}, {});
  return copies(state);
}

void Optimizer::load_state(const NamedTensors& state) {
  const char* const what = "[optimizer] load_state";
  NamedTensors to;
  const Tensor steps = to["steps"] = integers({0}, {});
  check_counter(state, "steps", what);
  std::map<std::string, std::vector<Out>> loaded;  // the state of a frozen parameter may be missing
  std::vector<Tensor> counts(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    const bool there = !memory_.empty() && (!p.frozen() || std::ranges::any_of(memory_, [&](const auto& m) {
      return state.contains(p.name + "." + m.first);
    }));
    for (const auto& [name, memory] : memory_) {
      Array array = there ? fresh(memory, i) : Array();
      loaded[name].push_back(array);
      if (there)
        check(to.emplace(p.name + "." + name, Tensor(array)).second,
              "[optimizer] expected parameters with different names to load its state, got two named {}", p.name);
    }
    const std::string key = p.name + ".steps";
    if ((there || memory_.empty()) && state.contains(key)) {
      check_counter(state, key, what);
      to[key] = counts[i] = integers({0}, {});
    }
  }
  assign(to, state, what);
  const auto number = [](const Tensor& t) { return on_host(t.array()).data<std::int64_t>()[0]; };
  state_ = Array();
  pending_.clear();
  steps_ = number(steps);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    bool any = memory_.empty();
    for (auto& [name, memory] : memory_) {
      memory.arrays[i] = loaded.at(name)[i];
      any |= memory.arrays[i].defined();
    }
    updates_[i] = counts[i].defined() ? number(counts[i]) : any ? steps_ : 0;
  }
}

AdamW::AdamW(std::vector<Parameter> ps, const AdamWOptions& o)
    : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm),
      options_(o),
      moment1_(remembered("moment1")),
      moment2_(remembered("moment2")) {
  check_moments("adamw", o.beta1, o.beta2, o.eps);
}

void AdamW::update(std::span<const Update> updates, const Array& state) {
  kernels(updates[0].parameter).adamw(adam_updates(options_, updates, moment1_, moment2_), state);
}

Lamb::Lamb(std::vector<Parameter> ps, const LambOptions& o)
    : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm),
      options_(o),
      moment1_(remembered("moment1")),
      moment2_(remembered("moment2")) {
  check_moments("lamb", o.beta1, o.beta2, o.eps);
}

void Lamb::update(std::span<const Update> updates, const Array& state) {
  kernels(updates[0].parameter).lamb(adam_updates(options_, updates, moment1_, moment2_), state);
}

Sgd::Sgd(std::vector<Parameter> ps, const SgdOptions& o)
    : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm), options_(o) {
  check(0 <= o.momentum && o.momentum < 1, "[sgd] expected a momentum in [0, 1), got {}", o.momentum);
  check(!o.nesterov || o.momentum > 0, "[sgd] expected a momentum above 0 with nesterov, got {}", o.momentum);
  if (o.momentum > 0) velocity_ = remembered("velocity");
}

void Sgd::update(std::span<const Update> updates, const Array& state) {
  std::vector<SgdUpdate> all;
  for (const Update& u : updates)
    all.push_back(
        {{.lr = u.lr, .momentum = options_.momentum, .weight_decay = u.weight_decay, .nesterov = options_.nesterov},
         u.gradient,
         u.parameter,
         velocity_.empty() ? Out() : velocity_[u.index]});
  kernels(updates[0].parameter).sgd(all, state);
}

Adagrad::Adagrad(std::vector<Parameter> ps, const AdagradOptions& o)
    : Optimizer(std::move(ps), o.lr, o.weight_decay, o.clip_norm), options_(o) {
  check(at_least_0(o.lr_decay) && at_least_0(o.initial_accumulator),
        "[adagrad] expected lr_decay and initial_accumulator of at least 0, got {} and {}", o.lr_decay,
        o.initial_accumulator);
  check_eps("adagrad", o.eps);
  sum_ = remembered("sum", o.initial_accumulator);
}

void Adagrad::update(std::span<const Update> updates, const Array& state) {
  std::vector<AdagradUpdate> all;
  for (const Update& u : updates)
    all.push_back({{.lr = u.lr / (1 + static_cast<double>(u.step - 1) * options_.lr_decay),
                    .eps = options_.eps * u.eps_factor,
                    .weight_decay = u.weight_decay},
                   u.gradient,
                   u.parameter,
                   sum_[u.index]});
  kernels(updates[0].parameter).adagrad(all, state);
}

}  // namespace plumb::nn
