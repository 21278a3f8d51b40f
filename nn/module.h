// Module: a tree of named parameters and child modules. Layer: a module that maps one tensor to one tensor.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "core/scope.h"
#include "nn/init.h"

namespace plumb::nn {

// The purpose of a parameter. The role, not the shape or the layer, decides the default factors by which an optimizer
// multiplies learning rate and weight decay. Other factors can be given when a parameter is registered, or set later
// through own() and each_parameter(). A statistic is a value that a layer measures and saves with its weights. A
// counter is a statistic that has no meaning as an average, such as a number of steps: an Ema copies it. Statistics and
// counters are always frozen, even after freeze(false).
enum class Role { weight, bias, norm, gate, shift, embedding, position, statistic, counter };
constexpr auto names_of(Role) {
  return std::array{"weight", "bias", "norm", "gate", "shift", "embedding", "position", "statistic", "counter"};
}
// Returns whether a parameter of this role is measured, not trained: a statistic or a counter.
constexpr bool is_measured(Role role) { return role == Role::statistic || role == Role::counter; }

// Returns whether weight decay applies by default to parameters of this role. The default factor of weight decay is
// then 1, else 0. The default factor of the learning rate is 1 for every role.
constexpr bool decays(Role role) { return role == Role::weight; }

// A handle to a parameter. Copies share the value, the factors and frozen(): a change through one copy is visible in
// all other copies, for example in the copy of an optimizer.
struct Parameter {
  // If a factor is not given, the default of the role applies. The parameter is frozen if it is measured.
  // Throws Error if `value` is not a variable.
  Parameter(std::string name, Tensor value, Role role, Init init, std::optional<double> lr_factor = {},
            std::optional<double> decay_factor = {});

  std::string name;  // the name within the module of the parameter; Module::parameters() returns full names
  Tensor value;      // a variable; optimizers change its buffer in place
  Role role;
  Init init;

  // Factors of the optimizer's learning rate, eps and weight decay, such as p.lr_factor() *= 0.1. The factor of eps is
  // 1 unless a residual method, such as CompleteP, changes it.
  double& lr_factor() const { return factors_->lr; }
  double& eps_factor() const { return factors_->eps; }
  double& decay_factor() const { return factors_->decay; }
  // Whether the parameter is constant. A frozen parameter gets no gradient, and optimizers skip a frozen parameter. The
  // flag is read when a graph is recorded, when a graph is differentiated, and in each optimizer step. A parameter that
  // is frozen after its gradient was computed does not change.
  bool& frozen() const;

 private:
  struct Factors {
    double lr, eps, decay;
  };
  std::shared_ptr<Factors> factors_;
};

// Base class of all modules: a tree of named parameters and child modules. A derived class registers its parameters
// with parameter(), and declares its member modules as Child, ChildPtr or Children (nn/child.h), which register
// themselves. A module can be neither copied nor moved.
class Module {
 public:
  // A short name of nn::Role for derived classes.
  using Role = nn::Role;

  // `type_name`, such as "Attention", is the first part of the module's path while the module has no parent. The
  // default is the name of the class, without namespaces.
  explicit Module(std::string type_name = "");
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Returns every parameter at and below this module, in the order of registration and with its full name, such as
  // "blocks.3.gate1.gamma". This function and all functions below throw Error if a registered child was destroyed.
  std::vector<Parameter> parameters() const;
  // Returns the values of the parameters that are not frozen at the time of the call, in the order of parameters().
  // grad() and hvp() take these values as arguments.
  Tensors trainable() const;
  // Returns the number of elements of all parameters, including frozen parameters.
  std::int64_t parameter_count() const;
  // Calls f for each parameter at and below this module, with its full name. f may change `init`, the factors and
  // frozen().
  void each_parameter(const std::function<void(const std::string& full_name, Parameter&)>& f);
  // Returns the parameter of this module with this name; parameters of children are not searched. Throws Error if the
  // module has no such parameter.
  Parameter& own(const std::string& parameter_name);
  // Freezes or unfreezes every parameter at and below this module. Parameters that are measured stay frozen.
  void freeze(bool frozen = true);
  // Calls f for this module and every module below it, parents first.
  void each_module(const std::function<void(Module&)>& f);

  // Switches this module and every module below it to training mode, or to evaluation mode (eval() or train(false)).
  // Dropout of all kinds acts in training mode only. A new module is in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  // Returns the path of the module, such as "ViT.blocks.3.attn": the type name of the root, then the names of the
  // children. Messages and random draws use the path.
  const Path& path() const {
    if (!named_.load(std::memory_order_acquire)) [[unlikely]]
      make_path();
    return path_;
  }
  // Returns a description of the network as a JSON object, for records and reports: the kind of the model and
  // everything that decides its function. The default is "": no description.
  virtual std::string card() const { return ""; }

 protected:
  // Throws Error if a parameter at or below this module was neither initialised by initialize() nor set by other code.
  // Only parameters whose values are drawn with a seed, or whose Init was changed after the declaration, are checked.
  // After the first success, the check is skipped until a parameter or a child is added.
  void check_initialised() const {
    if (!initialised_.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_uninitialised();
  }
  // Registers a parameter under a new name without dots, and returns its value. If a factor is not given, the default
  // of the role applies. dtype and device are those of defaults(). Throws Error for a name that is taken or has dots,
  // and for a factor that is negative or not finite.
  using Factor = std::optional<double>;
  Tensor parameter(const std::string& name, const Shape& shape, Init init, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});
  // Registers a parameter with the values, the dtype (f32 or f64) and the device of `initial`.
  Tensor parameter(const std::string& name, const Tensor& initial, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});

 private:
  template <class M>
  friend class Child;
  template <class M>
  friend class ChildPtr;
  template <class M>
  friend class Children;

  struct Entry {  // a child
    std::string name;
    Module* module;  // null if the module was destroyed
  };
  Module& of(const Entry& child) const;
  void look_for_uninitialised() const;
  void mark_initialised() const;
  void changed();  // called when this module or a module below it gets a parameter or a child
  Tensor add(Parameter p);
  void check_new(const std::string& name) const;
  // Registers a child. Throws Error for a name that is taken or has dots, and for a module that contains this one. If
  // the name is "", the parameters and children of the child appear as those of this module; such a child must be
  // complete when it is registered.
  void adopt(const std::string& name, Module& module);
  void make_path() const;
  void forget_path();  // the next call of path() makes the path of this module, or of a module below it, again
  // Returns whether a parameter or child of this module, or of a child with the name "", has this name.
  bool shows(const std::string& name) const;
  // Adds the full names of all parameters and modules at and below this module to `names`.
  void collect_names(const std::string& prefix, std::set<std::string>& names) const;
  bool shown_by_parent() const { return parent_ && name_.empty(); }
  void visit(const std::string& prefix, const std::function<void(const std::string&, const Parameter&)>& f) const;

  std::string name_;  // the name in the parent, or the type name at the root ("" for the name of the class)
  Module* parent_ = nullptr;
  std::size_t place_ = 0;                          // index among the parent's children
  mutable std::atomic<bool> initialised_ = false;  // a cache
  // Whether path_ is valid, and the path. The first call of path() makes it: a constructor of Module does not know the
  // name of the class.
  mutable std::atomic<bool> named_ = false;
  mutable Path path_;
  std::deque<Parameter> parameters_;
  std::vector<Entry> children_;
  bool training_ = true;
};

// Base class of modules that map one tensor to one tensor. A derived class overrides forward().
//   struct Net : nn::Layer {
//     nn::Child<nn::Linear> hidden{this, "hidden", {.in = 2, .out = 8}}, out{this, "out", {.in = 8, .out = 1}};
//     Tensor forward(const Tensor& x) const override { return out(relu(hidden(x))); }
//   };
class Layer : public Module {
 public:
  explicit Layer(std::string type_name = "") : Module(std::move(type_name)) {}

  // Runs forward() with this module's path as the scope (for messages and random draws), and calls the hooks. Throws
  // Error if a parameter of this layer or of a module below was not initialised.
  Tensor operator()(const Tensor& x) const;

  // Registers a hook that is called after each forward pass, with the input and the output. If the hook returns a
  // defined tensor, this tensor replaces the output; the tensor must have the shape, dtype and device of the output.
  // The hook is removed when the handle is destroyed.
  using ForwardHook = std::function<Tensor(const Layer& layer, const Tensor& input, const Tensor& output)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_forward(
      ForwardHook hook) const;
  // Registers a hook that is called before each forward pass, with the input. If the hook returns a defined tensor,
  // this tensor replaces the input; the tensor must have the dtype and device of the input, and a shape that forward()
  // accepts. The hook is removed when the handle is destroyed.
  using InputHook = std::function<Tensor(const Layer& layer, const Tensor& input)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_input(
      InputHook hook) const;
  // Registers a hook that is called in each backward pass, with the gradient of the output. The hook is removed when
  // the handle is destroyed.
  using BackwardHook = std::function<void(const Layer& layer, const Tensor& output_gradient)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_backward(
      BackwardHook hook) const;
  // Returns whether the layer has a hook. A parent must call a layer that has hooks separately, instead of fusing this
  // layer with another layer.
  bool hooked() const;

 protected:
  // Computes the layer. operator() calls it.
  virtual Tensor forward(const Tensor& x) const = 0;
  // Does what operator() does, with `compute` in the place of forward(). A derived class with other arguments than x
  // calls this function.
  Tensor compute_with_hooks(const Tensor& x, const std::function<Tensor(const Tensor&)>& compute) const;

 private:
  // The hooks, by number. The handles of hooks point to the maps.
  struct Hooks {
    std::map<int, ForwardHook> forward;
    std::map<int, InputHook> input;
    std::map<int, BackwardHook> backward;
  };
  const std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>();
};

// Fills every parameter from its declared Init, with draws that depend on the seed and the full name of the parameter.
// Repeated calls give the same values. The constructors of Plumb's models call initialize() at the end. Before
// initialize(), the parameters of a module have values drawn with seed 0 and the name within the module, so similar
// modules have the same values. A forward pass throws Error if such drawn values were neither initialised nor set by
// other code.
void initialize(Module& module, std::uint64_t seed);

}  // namespace plumb::nn
