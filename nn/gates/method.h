// A residual method: a row of the table of methods. A method builds the gates of each block, declares its constants,
// and claims properties of a network before training.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/gates/gate.h"
#include "nn/gates/recipe.h"
#include "nn/gates/training_step.h"

namespace plumb::nn {

// The place of the norms in a block: no norm (none), a norm before each branch (pre), or a norm after each residual sum
// (post).
enum class Norm { none, pre, post };
constexpr auto names_of(Norm) { return std::array{"none", "pre", "post"}; }

// A property that a method claims for a freshly initialised network. check_method() tests the claims of a method.
enum class InitProperty {
  identity_at_init,      // every block is the identity
  zero_branch_gradient,  // the weights inside the branches get gradient 0 in the first step
  loss_is_log_classes    // all logits are 0, so the cross-entropy is ln(classes)
};
constexpr auto names_of(InitProperty) {
  return std::array{"identity at init", "zero branch gradient", "loss ln(classes)"};
}

// How the mean square of the stream grows from branch to branch at initialisation. Blocks whose norm is post need no
// growth law: each norm resets the mean square to 1.
enum class Growth {
  identity,   // no growth: the branches add nothing, or almost nothing
  linear,     // every branch adds the same amount, because every branch reads a normalised stream
  harmonic,   // block l adds 1/l of the amount that the first block adds
  geometric,  // every branch adds the same share of its input, because the branch has no norm
  unstated    // the method states no growth law: signal probes predict nothing and give no warning
};
constexpr auto names_of(Growth) { return std::array{"identity", "linear", "harmonic", "geometric", "unstated"}; }

// Values of a method's constants, by name. An empty value means that the method computes the constant from the depth.
// The text form of an empty value is "by_depth".
using ConstantValues = std::map<std::string, std::optional<double>>;

// The effect on the network of changing the value of a method's constant.
enum class Affects {
  function,    // the network computes other logits from the same weights
  parameters,  // the network has other parameters: weights of a network with another value do not fit
  start        // only the initial values differ: from the same trained weights, the network computes the same logits
};

// The declaration of a constant in the formula of a method, such as mix_ln's post_share. The option --gate
// NAME:CONSTANT=VALUE, the model cards of weight files, the lists of methods and the reports use this declaration.
struct MethodConstant {
  std::string name;                     // letters, digits and underscores
  std::optional<double> standard = {};  // the default value; if empty, the method computes the constant from the depth
  // The lower and the upper bound of the value.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool above = false;  // whether the value must be above `least`, not equal to it
  bool whole = false;  // whether the value must be an integer
  Affects affects = Affects::function;
  std::string meaning = {};  // the meaning in one line, for lists and messages

  // Returns a description of the accepted values, such as "a number in [0, 1]".
  std::string expected() const;
  // Returns the name of the constant with this value as text, such as "post_share=0.75" or "alpha=by_depth". Parsing
  // the text gives exactly the same double.
  std::string text(std::optional<double> value) const;
};

// Makes the standard norm over dim channels: a LayerNorm for tokens, a BatchNorm2d for images.
std::unique_ptr<Layer> make_norm(Layout layout, std::int64_t dim, double eps);
// Makes a LayerNorm of width dim.
std::unique_ptr<Layer> make_layer_norm(std::int64_t dim, double eps);

// A method has no form for a block. check_method() then skips this block. GateContext::require() throws this error.
struct NotApplicable : Error {
  using Error::Error;
};

// A description of the block for which a method builds gates, with the junction of one gate.
struct GateContext : JunctionPlace {
  std::vector<BranchShape> branches = {};  // the branches of the block, in order
  double norm_eps = 1e-6;
  ConstantValues constants = {};  // the values of all constants of the method

  explicit GateContext(const JunctionPlace& place) : JunctionPlace(place) {}
  // Makes a norm over `width` channels: a LayerNorm for tokens, a BatchNorm2d for images.
  std::unique_ptr<Layer> norm(std::int64_t width) const { return make_norm(layout, width, norm_eps); }
  // Throws NotApplicable unless `ok`. A method whose formula has no form for this block calls require(). The message is
  // formatted only on failure.
  //   c.require(c.junctions >= 2, "[b2t] expected blocks of at least two branches, got {}", c.junctions);
  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> message, Args&&... args) const {
    if (!ok) throw NotApplicable(fmt::format(message, std::forward<Args>(args)...));
  }
  // Requires a stream of tokens, for a method that has no form for images. The message begins with `op`.
  void require_tokens(const char* op) const {
    require(layout == Layout::tokens, "[{}] expected a stream of tokens, got images: the method has no form for images",
            op);
  }
  // Returns a reader of the training step, for a gate that changes with the step (nn/gates/training_step.h).
  TrainingStep training_step() const { return step_.reader(); }
  // Returns the branch of the junction.
  const BranchShape& branch() const { return branches.at(static_cast<std::size_t>(junction)); }
  // Returns this context for another junction of the block.
  GateContext at(std::int64_t other) const {
    GateContext c = *this;
    c.junction = other;
    return c;
  }
  // Returns the value of a constant that the method declares. If the constant has no value, returns `by_depth`. Throws
  // Error for a constant that is not declared. If `by_depth` is not given, throws Error for a constant without a value.
  double constant(const std::string& constant_name, std::optional<double> by_depth = {}) const;

 private:
  friend class Block;
  TrainingStep step_ = {};  // the training step of the stack
};

// The gates of one block, and the other modules that the method keeps in the block.
struct BlockGates {
  // The modules, with the names under which the block registers them.
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules;
  // The gates of the junctions, in order. Each gate must be one of `modules`. Several junctions may share a gate.
  std::vector<Gate*> gates;
  // The place of the norms in this block, if different from Method::norm.
  std::optional<Norm> norm = {};

  // Adds a module under a name, and returns the module.
  template <class M>
  M& add(const std::string& name, std::unique_ptr<M> module) {
    M& m = *module;
    modules.emplace_back(name, std::move(module));
    return m;
  }
  // Adds a gate for the next junction, under the name gate1, gate2, .. by the number of the junction.
  template <class G>
  G& add_gate(std::unique_ptr<G> gate) {
    G& g = add(fmt::format("gate{}", gates.size() + 1), std::move(gate));
    gates.push_back(&g);
    return g;
  }
};

// A residual method: a row of the table of methods (nn/gates/gates.cpp).
struct Method {
  std::string name = {};
  Norm norm = Norm::pre;
  std::vector<InitProperty> claims = {};
  Recipe paper = deit_recipe();  // the training recipe of the method's paper
  Growth growth = Growth::linear;
  std::string formula = {};  // the formula in one line, for lists and reports
  std::string source = {};   // the paper
  // The paper's unit of depth, "N blocks" or "L = 2N branches"; empty if the method does not use the depth.
  std::string counts = {};
  std::string use = {};  // when to use the method
  std::string pitfalls = {};
  // The constants of the method. `build` and `adjust` find their values in GateContext::constants.
  std::vector<MethodConstant> constants = {};
  // Builds the gates of one block. Every method must set this function.
  std::function<BlockGates(const GateContext&)> build = {};
  // Makes one norm: a norm of a block, or the final norm of the stack. If this function is not set, the norm is a
  // LayerNorm for a stream of tokens and a BatchNorm2d for images. A method that sets it has no form for images.
  std::function<std::unique_ptr<Layer>(std::int64_t dim, double eps)> norm_layer = {};
  // Changes the learning-rate and eps factors of a parameter of a block. `name` is the parameter's name within the
  // block.
  std::function<void(const GateContext&, const std::string& name, Parameter&)> adjust = {};
  // Whether the stack has a norm `norm_embedding` before the first block, made as the final norm.
  bool embedding_norm = false;
  // Makes the input stream of the first block from x [B, T, D], after that norm. If this function is not set, the stream
  // is Stream{x}.
  std::function<Stream(const Tensor& x)> open = {};
  // Makes the output [B, T, D] from the stream after the last block. `norm` is the final norm, or null if the stack has
  // no final norm. If this function is not set, the output is norm(x), or x if `norm` is null.
  std::function<Tensor(const Stream&, const Layer* norm)> close = {};
  // Sets the fields that depend on the constants, such as `open` or `claims`. with() calls this function after with()
  // has set the constants.
  std::function<void(Method&)> follow = {};
  ConstantValues chosen = {};  // the constants with values other than the default; with() sets this field

  // Makes a norm for a stream of this layout. Throws Error if norm_layer has no form for the layout or makes no layer.
  std::unique_ptr<Layer> make_norm(Layout layout, std::int64_t dim, double eps) const;
  // Returns whether the method claims this property.
  bool claims_that(InitProperty c) const;
  // Returns this method with other values of some constants. Throws Error for a constant that the method does not
  // declare, and for a value outside the bounds of the constant.
  Method with(const ConstantValues& values) const;
  // Returns the values of all constants.
  ConstantValues values() const;
  // Returns the value of one constant; empty if the method computes the constant from the depth. Throws Error for a
  // constant that the method does not declare.
  std::optional<double> value(const std::string& constant_name) const;
  // Returns the name, with the constants that have values other than the default: "mix_ln", "mix_ln:post_share=0.75".
  std::string label() const;
  // Returns the name with every constant: "mix_ln:post_share=0.25".
  std::string text() const;
};

// A choice of method: the text form of a method of the table, or a Method.
//   {.method = "layerscale"}   {.method = "layerscale:init=1e-5"}   {.method = methods::layerscale(1e-5)}
// The constructors throw the errors of method_named(), and Error for a Method without `build`.
class MethodChoice {
 public:
  MethodChoice(const std::string& text);
  MethodChoice(const char* text) : MethodChoice(std::string(text)) {}
  MethodChoice(Method method);
  const Method& operator*() const { return *method_; }
  const Method* operator->() const { return method_.get(); }

 private:
  std::shared_ptr<const Method> method_;
};

// Returns the recipe of a model. If `given` has a value, the recipe is `given`. Otherwise the recipe is that of the
// method's paper, but with the initial weights of ViT (Base::truncated_normal) for every method.
Recipe recipe_of(const Method& method, const std::optional<Recipe>& given);

// Builds a gate for each junction of the block: gate1, gate2, .. `make` gets the GateContext of the junction and
// returns a unique_ptr to a gate.
template <class Make>
BlockGates gate_per_junction(const GateContext& context, Make make) {
  BlockGates gates;
  for (std::int64_t i = 0; i < context.junctions; ++i) gates.add_gate(make(context.at(i)));
  return gates;
}
// Builds a gate of type G for each junction, constructed from `arguments`. Without arguments, the constructor of G gets
// the GateContext of the junction, or no arguments, and gates_from<G> has the form of Method::build.
template <class G, class... Arguments>
BlockGates gates_from(const GateContext& context, const Arguments&... arguments) {
  constexpr bool from_context = sizeof...(Arguments) == 0 && std::is_constructible_v<G, const GateContext&>;
  static_assert(std::is_base_of_v<Gate, G>, "a gate must derive from nn::Gate or from one of its subclasses");
  static_assert(!std::is_abstract_v<G>,
                "this gate has no formula: override Tensor combine(const Tensor& skip, const Tensor& branch) const, "
                "with exactly these parameters");
  static_assert(std::is_abstract_v<G> || from_context || std::is_constructible_v<G, const Arguments&...>,
                "a gate must have a public constructor that takes a const nn::GateContext& or no arguments, or the "
                "arguments of gates_from()");
  if constexpr (!std::is_base_of_v<Gate, G>)
    return {};  // the failed static_assert reports the error
  else if constexpr (from_context)
    return gate_per_junction(context, [](const GateContext& c) { return std::make_unique<G>(c); });
  else if constexpr (std::is_constructible_v<G, const Arguments&...>)
    return gate_per_junction(context, [&](const GateContext&) { return std::make_unique<G>(arguments...); });
  else
    return {};
}

// Adds a method to the table under a new name. All lists of methods, options such as --gates, studies, reports and
// model cards then include the method. The constants are declared in `method`, and the constructor of the gate reads
// their values from the GateContext:
//   struct Prores : ScaleGate { explicit Prores(const GateContext& c) : ScaleGate(full({1}, 1 / c.constant("T"))) {} };
//   register_method<Prores>("prores", {.formula = "x + f(LN(x)) / T",
//                                      .constants = {{.name = "T", .standard = 3, .least = 1}}});
// Both functions throw Error if the name is taken, is "all", or has other characters than lower-case letters, digits
// and underscores. Both also throw Error if `build` is missing, if a constant is declared twice, or if a default is
// outside its bounds.
void register_method(const std::string& name, Method method);
template <class G>
void register_method(const std::string& name, Method method = {}) {
  method.build = gates_from<G>;
  register_method(name, std::move(method));
}

// Returns the names of all methods, in the order of the table. Registered methods come last.
std::vector<std::string> method_names();
// Returns a method of the table from its text form. Throws Error for an unknown name, with the nearest known names in
// the message, and the errors of method_text() and Method::with().
Method method_named(const std::string& text);

}  // namespace plumb::nn
