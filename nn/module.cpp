#include "nn/module.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <set>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/class_name.h"
#include "core/random.h"

namespace plumb::nn {
namespace {

// Adds a hook to one of the maps of `hooks`. The handle removes the hook if `hooks` still lives.
template <class Hooks, class F>
Handle add_hook(const char* op, const std::shared_ptr<Hooks>& hooks, std::map<int, F> Hooks::*map, F hook) {
  check(static_cast<bool>(hook), "[{}] expected a function to call, got an empty one", op);
  std::map<int, F>& numbered = (*hooks).*map;
  const int id = numbered.empty() ? 0 : numbered.rbegin()->first + 1;
  numbered[id] = std::move(hook);
  return Handle([weak = std::weak_ptr(hooks), map, id] {
    if (const auto alive = weak.lock()) ((*alive).*map).erase(id);
  });
}

// The buffer version of a parameter whose values are only from its declaration.
constexpr std::uint32_t declared_version = 1;

// Returns whether the parameter still needs initialize(): its value was drawn before the seed was known, or its `init`
// was changed after the declaration.
bool wants_initialising(const Parameter& p) {
  if (is_measured(p.role)) return false;  // its first pass sets it, maybe on another thread at the same time
  if (p.value.array().version() != declared_version) return false;
  if (p.init.draws()) return true;
  const Array declared = empty_like(p.value.array());
  p.init.fill(declared, 0, p.name);
  return !same_bytes(declared, p.value.array());
}

void check_replacement(const char* op, const Tensor& replaced, const Tensor& by, bool any_shape) {
  check(by.dtype() == replaced.dtype() && by.device() == replaced.device() &&
            (any_shape || by.shape() == replaced.shape()),
        "[{}] expected a hook that returns {}{}, like the tensor it replaces, or an undefined tensor, got {}", op,
        describe(replaced), any_shape ? ", of any shape" : "", describe(by));
}

}  // namespace

Parameter::Parameter(std::string own_name, Tensor variable, Role r, Init i, std::optional<double> lr,
                     std::optional<double> decay)
    : name(std::move(own_name)),
      value(std::move(variable)),
      role(r),
      init(std::move(i)),
      factors_(std::make_shared<Factors>(lr.value_or(1), 1.0, decay.value_or(decays(r) ? 1 : 0))) {
  check(value.node() && !value.node()->backward, "[parameter] expected a variable for {}, got {}", name,
        describe(value));
  frozen() = frozen() || is_measured(r);
}

bool& Parameter::frozen() const { return value.node()->frozen; }

Module::Module(std::string type_name) : name_(std::move(type_name)) {}

Module::~Module() {
  if (parent_) parent_->children_[place_].module = nullptr;
  for (const Entry& c : children_)
    if (c.module) c.module->parent_ = nullptr;
}

Module& Module::of(const Entry& child) const {
  check(child.module,
        "[module] expected child \"{}\" of {} to live as long as its parent, got a destroyed module: an nn::Child must "
        "be a member, not a local variable",
        child.name, *path());
  return *child.module;
}

void Module::changed() {
  for (Module* m = this; m; m = m->parent_) m->initialised_ = false;
  forget_path();  // a message in a constructor may have named the module after a base class
}

void Module::look_for_uninitialised() const {
  std::vector<std::string> names;
  visit("", [&](const std::string& full_name, const Parameter& p) {
    if (wants_initialising(p)) names.push_back(full_name);
  });
  check(names.empty(),
        "[{}] expected initialised parameters, got {}{} as {} declared: call nn::initialize(model, seed) when the "
        "model is complete, or load its weights. If you did, make this module an nn::Child of its parent",
        *path(), names.empty() ? "" : names[0], names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "",
        names.size() > 1 ? "they were" : "it was");
  mark_initialised();
}

void Module::mark_initialised() const {
  initialised_.store(true, std::memory_order_relaxed);
  for (const Entry& c : children_) of(c).mark_initialised();
}

Tensor Module::parameter(const std::string& name, const Shape& shape, Init init, Role role, Factor lr_factor,
                         Factor decay_factor) {
  const Array value(shape, defaults().dtype, defaults().device);
  init.fill(value, 0, name);
  return add({name, variable(value), role, std::move(init), lr_factor, decay_factor});
}

Tensor Module::parameter(const std::string& name, const Tensor& initial, Role role, Factor lr_factor,
                         Factor decay_factor) {
  check(initial.defined() && is_float(initial.dtype()),
        "[module] expected initial values in f32 or f64 for {}.{}, got {}", *path(), name, describe(initial));
  const Array value = empty_like(initial.array());
  copy_into(initial.array(), value);
  return add({name, variable(value), role, Init::values(initial.values()), lr_factor, decay_factor});
}

Tensor Module::add(Parameter p) {
  check(!p.name.empty() && p.name.find('.') == std::string::npos,
        "[module] expected a parameter name without dots, got \"{}\"", p.name);
  check_new(p.name);
  const auto usable = [](double factor) { return std::isfinite(factor) && factor >= 0; };
  check(usable(p.lr_factor()) && usable(p.decay_factor()),
        "[module] expected finite factors of at least 0 for {}.{}, got {} for the learning rate and {} for the decay",
        *path(), p.name, p.lr_factor(), p.decay_factor());
  p.value.node()->name = p.name;
  changed();
  return parameters_.emplace_back(std::move(p)).value;
}

void Module::check_new(const std::string& name) const {
  check(!shown_by_parent(),
        "[module] expected a child without a name to be complete when it is registered, got a later addition \"{}\" to "
        "{}",
        name, *path());
  check(!shows(name), "[module] expected a new name in {}, got \"{}\", which is taken", *path(), name);
}

bool Module::shows(const std::string& name) const {
  return std::ranges::find(parameters_, name, &Parameter::name) != parameters_.end() ||
         std::ranges::any_of(children_,
                             [&](const Entry& c) { return c.name == name || (c.name.empty() && of(c).shows(name)); });
}

void Module::collect_names(const std::string& prefix, std::set<std::string>& names) const {
  for (const Parameter& p : parameters_) names.insert(prefix + p.name);
  for (const Entry& c : children_) {
    if (!c.name.empty()) names.insert(prefix + c.name);
    of(c).collect_names(c.name.empty() ? prefix : prefix + c.name + ".", names);
  }
}

void Module::adopt(const std::string& name, Module& module) {
  check(name.find('.') == std::string::npos, "[module] expected a child name without dots, got \"{}\"", name);
  if (module.parent_)
    fail(fmt::format("[module] expected a module without a parent for {}.{}, got {}", *path(), name, *module.path()));
  for (const Module* m = this; m; m = m->parent_)
    if (m == &module)
      fail(fmt::format("[module] expected a module that does not contain {0} for {0}.{1}, got {2}, which contains it",
                       *path(), name, *m->path()));
  if (!name.empty()) {
    check_new(name);
  } else {
    std::set<std::string> names, brought;
    collect_names("", names);
    module.collect_names("", brought);
    for (const std::string& full_name : brought)
      check(!names.contains(full_name), "[module] expected a new name in {}, got \"{}\", which is taken", *path(),
            full_name);
  }
  children_.push_back({name, &module});
  module.name_ = name;
  module.parent_ = this;
  module.place_ = children_.size() - 1;
  module.forget_path();
  changed();
}

void Module::make_path() const {
  static std::recursive_mutex mutex;  // two threads may ask for the first time
  const std::lock_guard lock(mutex);
  if (named_.load(std::memory_order_relaxed)) return;
  if (!parent_)
    path_ = std::make_shared<const std::string>(name_.empty() ? class_name(typeid(*this)) : name_);
  else
    path_ = name_.empty() ? parent_->path() : std::make_shared<const std::string>(*parent_->path() + "." + name_);
  named_.store(true, std::memory_order_release);
}

void Module::forget_path() {
  if (!named_.exchange(false)) return;  // a module below has a path only if this module has one
  for (const Entry& c : children_)
    if (c.module) c.module->forget_path();
}

void Module::visit(const std::string& prefix,
                   const std::function<void(const std::string&, const Parameter&)>& f) const {
  for (const Parameter& p : parameters_) f(prefix + p.name, p);
  for (const Entry& c : children_) of(c).visit(c.name.empty() ? prefix : prefix + c.name + ".", f);
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> all;
  visit("", [&](const std::string& full_name, const Parameter& p) {
    // Messages about gradients use the full names in the whole model. Two threads may call this function for a model
    // that is complete, so a name is written only if it changes.
    if (!parent_ && p.value.node()->name != full_name) p.value.node()->name = full_name;
    all.push_back(p);
    all.back().name = full_name;
  });
  return all;
}

Tensors Module::trainable() const {
  Tensors values;
  for (const Parameter& p : parameters())
    if (!p.frozen()) values.push_back(p.value);
  return values;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  visit("", [&](const std::string&, const Parameter& p) { count += p.value.numel(); });
  return count;
}

void Module::each_parameter(const std::function<void(const std::string&, Parameter&)>& f) {
  // This function is not const, so the parameters are not const either.
  visit("", [&](const std::string& full_name, const Parameter& p) { f(full_name, const_cast<Parameter&>(p)); });
}

Parameter& Module::own(const std::string& parameter_name) {
  const auto p = std::ranges::find(parameters_, parameter_name, &Parameter::name);
  check(p != parameters_.end(), "[module] expected a parameter of {}, got \"{}\"", *path(), parameter_name);
  return *p;
}

void Module::each_module(const std::function<void(Module&)>& f) {
  f(*this);
  for (const Entry& c : children_) of(c).each_module(f);
}

void Module::freeze(bool frozen) {
  each_parameter([&](const std::string&, Parameter& p) { p.frozen() = frozen || is_measured(p.role); });
}

void Module::train(bool on) {
  training_ = on;
  for (const Entry& c : children_) of(c).train(on);
}

Tensor Layer::operator()(const Tensor& x) const {
  return compute_with_hooks(x, [this](const Tensor& input) { return forward(input); });
}

Tensor Layer::compute_with_hooks(const Tensor& x, const std::function<Tensor(const Tensor&)>& compute) const {
  const PathScope scope(path());
  const PhaseScope phase(*current_phase() ? current_phase() : "forward");
  check_initialised();
  // A hook may remove itself, so the loops use copies of the maps.
  Tensor input = x;
  for (const auto& [id, hook] : std::map(hooks_->input))
    if (const Tensor replaced = hook(*this, input); replaced.defined()) {
      check_replacement("on_input", input, replaced, true);
      input = replaced;
    }
  Tensor output = compute(input);
  check(output.defined(), "[layer] expected forward() of {} to return a tensor, got an undefined tensor", *path());
  for (const auto& [id, hook] : std::map(hooks_->forward))
    if (const Tensor replaced = hook(*this, input, output); replaced.defined()) {
      check_replacement("on_forward", output, replaced, false);
      output = replaced;
    }
  if (!hooks_->backward.empty() && output.requires_grad()) {
    // If the layer returned its input, the hook needs a separate node, because other uses of the input do not belong to
    // this layer.
    if (output.node() == x.node())
      output = record("identity", output.array(), {output}, [](const Tensor& dy) { return Tensors{dy}; });
    // The node keeps this function as long as the graph lives. The handles remove hooks from the map.
    const int id = output.node()->hooks.empty() ? 0 : output.node()->hooks.rbegin()->first + 1;
    output.node()->hooks[id] = [this, hooks = hooks_](const Tensor& gradient) {
      for (const auto& [number, hook] : std::map(hooks->backward)) hook(*this, gradient);
      return Tensor();
    };
  }
  return output;
}

Handle Layer::on_forward(ForwardHook hook) const {
  return add_hook("on_forward", hooks_, &Hooks::forward, std::move(hook));
}
Handle Layer::on_input(InputHook hook) const { return add_hook("on_input", hooks_, &Hooks::input, std::move(hook)); }
Handle Layer::on_backward(BackwardHook hook) const {
  return add_hook("on_backward", hooks_, &Hooks::backward, std::move(hook));
}

bool Layer::hooked() const { return !hooks_->forward.empty() || !hooks_->input.empty() || !hooks_->backward.empty(); }

void initialize(Module& module, std::uint64_t seed) {
  module.each_parameter([&](const std::string& full_name, Parameter& p) {
    p.value.node()->name = full_name;
    p.init.fill(p.value.array(), seed, full_name);
  });
}

}  // namespace plumb::nn
