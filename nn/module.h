// Module: a named tree of parameters. Layer: a module that maps one tensor to one tensor.
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

// What a parameter is for. The role alone, not the shape or the layer, says by which factors an optimizer treats it:
// those of this table, unless its registration gives others. own() and each_parameter() change them afterwards. A
// statistic is what a layer measures and keeps with its weights: it is frozen, and freeze(false) leaves it so.
enum class Role { weight, bias, norm, gate, shift, embedding, position, statistic };
const char* name(Role role);
struct RoleFactors {
  double lr, decay;  // multiply the optimizer's learning rate and weight decay
};
constexpr RoleFactors factors(Role role) { return {.lr = 1, .decay = role == Role::weight ? 1.0 : 0.0}; }
inline bool decays(Role role) { return factors(role).decay > 0; }

// A handle, as its value is: copies share factors and frozen, so that whoever holds one, such as an optimizer, sees
// what is changed through another.
struct Parameter {
  // `value` is a variable. Frozen if the role is statistic.
  Parameter(std::string name, Tensor value, Role role, Init init, std::optional<double> lr_factor = {},
            std::optional<double> decay_factor = {});
  Parameter(const Parameter&) = default;
  Parameter& operator=(const Parameter& other);  // becomes a handle of the same

  std::string name;  // within its module; parameters() gives full names
  Tensor value;      // a variable; optimizers change its buffer in place
  Role role;
  Init init;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;

 public:
  double& lr_factor;     // multiplies the optimizer's learning rate: the role's unless declared otherwise
  double& eps_factor;    // multiplies the optimizer's eps, where it has one (CompleteP); 1
  double& decay_factor;  // multiplies the optimizer's weight decay: likewise
  // A constant: gradients are not computed for it, and optimizers leave it alone. Read when a graph is recorded, when
  // it is differentiated and in each step: one that is frozen after its gradient was computed stays where it is.
  bool& frozen;
};

class Module {
 public:
  using Role = nn::Role;

  explicit Module(std::string type_name);  // "Attention": names the root of paths in messages
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Every parameter below this module, in order of registration, under full names ("blocks.3.gate1.gamma"). These and
  // the functions below throw for a child that was registered and destroyed since.
  std::vector<Parameter> parameters() const;
  Tensors trainable()
      const;  // the values of those that are not frozen now, in the same order: what grad() and hvp() take
  std::int64_t parameter_count() const;
  // Applies f to each parameter below, with its full name, to change init, a factor or frozen.
  void each_parameter(const std::function<void(const std::string& full_name, Parameter&)>& f);
  Parameter& own(const std::string& parameter_name);        // of this module itself; throws if there is none
  void freeze(bool frozen = true);                          // everything below, but for statistics, which stay frozen
  void each_module(const std::function<void(Module&)>& f);  // this one and everything below, parents first

  // Training mode (dropout of all kinds on) or evaluation mode, for this module and everything below. Modules start in
  // training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  // "ViT.blocks.3.attn": the root's type, then names.
  const Path& path() const;

 protected:
  // Throws if a parameter at or below this module is as it was declared, though it draws its initial values or its Init
  // was changed since: neither initialize() nor anybody else has set it. Looks once.
  void check_initialised() const {
    if (!initialised_.load(std::memory_order_relaxed)) [[unlikely]]
      look_for_uninitialised();
  }
  // Registers a parameter; names must be new and without dots. A factor that is not given is the role's; both are
  // finite and at least 0.
  using Factor = std::optional<double>;
  Tensor parameter(const std::string& name, const Shape& shape, Init init, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});
  // The same with initial values given as a tensor, which also gives dtype and device.
  Tensor parameter(const std::string& name, const Tensor& initial, Role role, Factor lr_factor = {},
                   Factor decay_factor = {});
  // Registers a member as a child. Names are new; dots are allowed ("blocks.3"). The name "" shows the child's
  // parameters and children as this module's own; it is registered when it is complete and gets nothing further.
  template <class M>
  M& child(const std::string& name, M& module) {
    adopt(name, module);
    return module;
  }

 private:
  struct Child {
    std::string name;
    Module* module;  // null: destroyed
  };
  Module& of(const Child& child) const;
  void look_for_uninitialised() const;
  void mark_initialised() const;
  void changed();  // it or something below got a parameter or a child
  Tensor add(Parameter p);
  void check_new(const std::string& name) const;
  void adopt(const std::string& name, Module& module);
  void forget_path();
  bool shows(const std::string& name) const;  // a parameter or child of its own, or of a nameless child
  void collect_names(const std::string& prefix,
                     std::set<std::string>& names) const;  // of all parameters and modules below, in full
  bool shown_by_parent() const { return parent_ && name_.empty(); }
  void visit(const std::string& prefix, const std::function<void(const std::string&, Parameter&)>& f) const;

  std::string name_;  // in the parent, or the type at the root
  Module* parent_ = nullptr;
  std::size_t place_ = 0;  // among the parent's children
  mutable std::atomic<bool> initialised_ = false;
  mutable Path path_;
  mutable std::deque<Parameter> parameters_;
  std::vector<Child> children_;
  bool training_ = true;
};

class Layer : public Module {
 public:
  using Module::Module;

  // Runs forward inside this module's scope (messages, randomness) and between its hooks. Throws if a parameter below
  // was not initialised.
  Tensor operator()(const Tensor& x) const;

  // Called after each forward pass with input and output; a defined result replaces the output, and must have its
  // shape, dtype and device. Gone with the handle.
  using ForwardHook = std::function<Tensor(const Layer& layer, const Tensor& input, const Tensor& output)>;
  [[nodiscard("the hook is gone with its handle: keep it")]] Handle on_forward(ForwardHook hook) const;
  // Called before it with the input; a defined result replaces the input, and must have its dtype and device: forward()
  // says what shapes it takes.
  using InputHook = std::function<Tensor(const Layer& layer, const Tensor& input)>;
  [[nodiscard("the hook is gone with its handle: keep it")]] Handle on_input(InputHook hook) const;
  // Called in each backward pass with the gradient of the output.
  using BackwardHook = std::function<void(const Layer& layer, const Tensor& output_gradient)>;
  [[nodiscard("the hook is gone with its handle: keep it")]] Handle on_backward(BackwardHook hook) const;
  bool hooked() const;  // whether any of them is set: a parent that computes past this layer then calls it instead

 protected:
  virtual Tensor forward(const Tensor& x) const = 0;

 private:
  template <class F>
  using Hooks = std::shared_ptr<std::map<int, F>>;
  mutable Hooks<ForwardHook> forward_hooks_;
  mutable Hooks<InputHook> input_hooks_;
  mutable Hooks<BackwardHook> backward_hooks_;
};

// Fills every parameter by its declared Init, drawn from (seed, full name). Idempotent; models call it themselves,
// last. Until then parameters have values drawn from seed 0 and their own names, the same in modules that are alike,
// and a first forward pass throws.
void initialize(Module& module, std::uint64_t seed);

}  // namespace plumb::nn
