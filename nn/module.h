// Module, a named tree of parameters, and Layer, a module that maps one tensor to one tensor.
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

// The purpose of a parameter. Only its role, not its shape or layer, decides by which factors an optimizer multiplies
// learning rate and weight decay, unless the factors were given when the parameter was registered. own() and
// each_parameter() can change the factors later. A statistic is a value that a layer measures and saves with its
// weights; it is always frozen, and freeze(false) does not change that.
enum class Role { weight, bias, norm, gate, shift, embedding, position, statistic };
const char* name(Role role);

// The default factors of a role: 1 for the learning rate; 1 for the weight decay of weights, 0 for that of other roles.
struct RoleFactors {
  double lr, decay;  // of the optimizer's learning rate and weight decay
};
// The default factors of parameters with this role.
constexpr RoleFactors factors(Role role) { return {.lr = 1, .decay = role == Role::weight ? 1.0 : 0.0}; }
// Whether weight decay applies to parameters of this role by default.
inline bool decays(Role role) { return factors(role).decay > 0; }

// A handle to a parameter. Copies share the value, the factors and `frozen`: a change through one copy is visible in
// all others, for example in the copy that an optimizer holds.
struct Parameter {
  // `value` must be a variable (Error otherwise). Factors that are not given are those of the role. The parameter is
  // frozen if the role is statistic.
  Parameter(std::string name, Tensor value, Role role, Init init, std::optional<double> lr_factor = {},
            std::optional<double> decay_factor = {});
  // A copy is a handle of the same parameter.
  Parameter(const Parameter&) = default;
  Parameter& operator=(const Parameter& other);

  std::string name;  // the name within its module; parameters() returns full names
  Tensor value;      // a variable, whose buffer optimizers change in place
  Role role;
  Init init;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;

 public:
  // Factors of the optimizer's learning rate, eps and weight decay. eps_factor is 1 unless a method changes it
  // (CompleteP).
  double& lr_factor;
  double& eps_factor;
  double& decay_factor;
  // Whether the parameter is constant: no gradients are computed for it, and optimizers skip it. The flag is read when
  // a graph is recorded, when the graph is differentiated, and in each step. A parameter that is frozen after its
  // gradient was computed does not move.
  bool& frozen;
};

// Base class of all modules: a tree of named parameters and child modules. A derived class registers its parameters
// with parameter() and its member modules with child(). A module can be neither copied nor moved.
class Module {
 public:
  // The role type, for use in derived classes without the namespace.
  using Role = nn::Role;

  // type_name: the first part of the module's path in messages while it has no parent, such as "Attention".
  explicit Module(std::string type_name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Returns every parameter at and below this module, in the order of registration, under its full name
  // ("blocks.3.gate1.gamma"). This function and those below throw Error if a registered child was destroyed.
  std::vector<Parameter> parameters() const;
  // Returns the values of the parameters that are not frozen now, in the same order: the arguments of grad() and hvp().
  Tensors trainable() const;
  // Returns the number of elements of all parameters, frozen ones included.
  std::int64_t parameter_count() const;
  // Calls f for each parameter at and below this module, with its full name. f may change init, the factors and
  // `frozen`.
  void each_parameter(const std::function<void(const std::string& full_name, Parameter&)>& f);
  // Returns a parameter of this module itself, not of a child. Throws Error if there is none of this name.
  Parameter& own(const std::string& parameter_name);
  // Freezes or unfreezes every parameter at and below this module; statistics stay frozen.
  void freeze(bool frozen = true);
  // Calls f for this module and every module below it, parents first.
  void each_module(const std::function<void(Module&)>& f);

  // Switches this module and everything below it to training mode, in which dropout of all kinds is on, or to
  // evaluation mode (eval(), train(false)). Modules start in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  // The path of the module, for messages and random draws: the type name of the root, then names, such as
  // "ViT.blocks.3.attn".
  const Path& path() const;

 protected:
  // Throws Error if a parameter at or below this module still has the value of its declaration, although that value
  // must be drawn with a seed, or its Init was changed later. Such a parameter was neither initialised by initialize()
  // nor set by other code. After the first success, the check is skipped until a parameter or child is added.
  void check_initialised() const {
    if (!initialised_.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_uninitialised();
  }
  // Registers a parameter under a new name without dots and returns its value. A factor that is not given is that of
  // the role. Throws Error for a name that is taken or has dots, and for a factor that is negative or not finite. dtype
  // and device are those of defaults().
  using Factor = std::optional<double>;
  Tensor parameter(const std::string& name, const Shape& shape, Init init, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});
  // Registers a parameter whose initial values, dtype (f32 or f64) and device are those of `initial`.
  Tensor parameter(const std::string& name, const Tensor& initial, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});
  // Registers a member module as a child and returns it. The name must be new; it may have dots ("blocks.3"). Under the
  // name "", the parameters and children of the child appear as those of this module; such a child must be complete
  // when it is registered. Throws Error for a name that is taken and for a module that already has a parent.
  template <class M>
  M& child(const std::string& name, M& module) {
    adopt(name, module);
    return module;
  }

 private:
  struct Child {
    std::string name;
    Module* module;  // null if the module was destroyed
  };
  Module& of(const Child& child) const;
  void look_for_uninitialised() const;
  void mark_initialised() const;
  void changed();  // called when this module or one below it gets a parameter or a child
  Tensor add(Parameter p);
  void check_new(const std::string& name) const;
  void adopt(const std::string& name, Module& module);
  void forget_path();
  // Whether this name belongs to a parameter or child of this module, or of a nameless child.
  bool shows(const std::string& name) const;
  // Adds the full names of all parameters and modules below to `names`.
  void collect_names(const std::string& prefix, std::set<std::string>& names) const;
  bool shown_by_parent() const { return parent_ && name_.empty(); }
  void visit(const std::string& prefix, const std::function<void(const std::string&, Parameter&)>& f) const;

  std::string name_;  // the name in the parent, or the type name at the root
  Module* parent_ = nullptr;
  std::size_t place_ = 0;  // index among the parent's children
  mutable std::atomic<bool> initialised_ = false;
  mutable Path path_;
  mutable std::deque<Parameter> parameters_;
  std::vector<Child> children_;
  bool training_ = true;
};

// Base class of modules that map one tensor to one tensor. A derived class overrides forward().
class Layer : public Module {
 public:
  using Module::Module;

  // Runs forward() with this module's path as the scope (for messages and random draws), and calls the hooks. Throws
  // Error if a parameter below was not initialised.
  Tensor operator()(const Tensor& x) const;

  // Registers a hook that is called after each forward pass with input and output. A defined result replaces the
  // output, and must have its shape, dtype and device. The hook is removed when the handle is destroyed.
  using ForwardHook = std::function<Tensor(const Layer& layer, const Tensor& input, const Tensor& output)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_forward(
      ForwardHook hook) const;
  // Registers a hook that is called before each forward pass with the input. A defined result replaces the input, and
  // must have its dtype and device; forward() decides which shapes it accepts. The hook is removed when the handle is
  // destroyed.
  using InputHook = std::function<Tensor(const Layer& layer, const Tensor& input)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_input(
      InputHook hook) const;
  // Registers a hook that is called in each backward pass with the gradient of the output. It is removed when the
  // handle is destroyed.
  using BackwardHook = std::function<void(const Layer& layer, const Tensor& output_gradient)>;
  [[nodiscard("the hook is removed when its handle is destroyed: keep the handle")]] Handle on_backward(
      BackwardHook hook) const;
  // Whether the layer has any hook. A parent that would fuse this layer with another one must then call it instead.
  bool hooked() const;

 protected:
  // Computes the layer. operator() calls it.
  virtual Tensor forward(const Tensor& x) const = 0;

 private:
  template <class F>
  using Hooks = std::shared_ptr<std::map<int, F>>;
  mutable Hooks<ForwardHook> forward_hooks_;
  mutable Hooks<InputHook> input_hooks_;
  mutable Hooks<BackwardHook> backward_hooks_;
};

// Fills every parameter from its declared Init, with draws that depend on the seed and the full name of the parameter.
// Repeated calls give the same values. Models call it at the end of their constructors. Before that, the parameters of
// a module have values drawn with seed 0 and the name within the module, so similar modules have the same values, and
// the first forward pass throws Error.
void initialize(Module& module, std::uint64_t seed);

}  // namespace plumb::nn
