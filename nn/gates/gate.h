// The gate interface. A gate defines how a residual method adds the value of a branch (attention or MLP) to the stream.
// A custom method derives a gate from Gate, or from one of the classes below it, and is registered with
// register_gate().
//
// For each of its branches, a block computes (nn/blocks/junction.cpp)
//   u = gate.read(stream)         followed by the block's norm if the norm is pre
//   f = branch(u)
//   gate.join(stream, f, norm)    norm is null unless the block's norm is post
// For most methods, the result is y = combine(x, f) or y = norm(combine(x, f)). A gate must implement combine(). A gate
// can also change the initial weights of the branch, the computation inside the branch, and the tensors that the stream
// carries.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/gates/training_step.h"
#include "nn/layers/branch.h"
#include "nn/layers/stream.h"

namespace plumb::nn {

// State of one calibrate() pass. All gates of the model share this state; Gate::calibrate() reads and sets its fields.
struct Calibration {
  std::optional<double> carried = {};  // a value from the previous gate for the next gate; empty at the first gate
};

// Base class of all gates. A derived gate must override combine(); every other function has a default. A derived gate
// registers its parameters with parameter() (nn/module.h). Parameters that scale the branch or the stream must have
// Role::gate. In the shapes below, B is the number of samples, T the number of tokens, and D the width of the stream.
// The constructor's `type_name` is the gate's name in messages while the gate has no parent.
class Gate : public Module {
 public:
  explicit Gate(const std::string& type_name = "Gate") : Module(type_name) {}

  // Returns the stream after the residual sum and before any norm. `skip` [B, T, D] is the stream before the branch;
  // `branch` [B, T, D] is the value of the branch. The result must have the shape and dtype of `skip`.
  virtual Tensor combine(const Tensor& skip, const Tensor& branch) const = 0;
  // Returns combine(skip, branch), in which the contribution of the branch to sample b is multiplied by row_scale[b];
  // row_scale is [B] (stochastic depth). The default is skip + row_scale (combine(skip, branch) - skip). With this
  // default, the result for a dropped sample, whose factor is 0, is `skip`. If the result for a dropped sample must be
  // another value, such as a multiple of `skip`, override this function.
  virtual Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const;

  // Returns the term that the gate adds to the kept part of the stream, in the shape of combine(). Signal probes
  // measure this term. The default, combine(skip, branch) - skip, is correct for every formula up to the rounding of
  // `skip`. A gate that adds a term to `skip` should return this term directly, because the direct result is exact even
  // for tiny terms.
  virtual Tensor added(const Tensor& skip, const Tensor& branch) const;
  // Returns the factors that the gate applies to this stream, as it is before the junction, in any shape; undefined if
  // the gate has no factors. Signal probes measure these factors. The default is the concatenation of the gate's
  // parameters of Role::gate. The default is undefined if one of these parameters is a matrix: such a gate computes its
  // factors from the stream, and should override this function to return the factors.
  virtual Tensor values(const Stream& before) const;

  // Changes the initial weights of the branch: scales their declared Init (Linear::scale_init(),
  // Branch::scale_value_path()). The block calls init_branch() once, in the constructor of the block, before the model
  // is initialised.
  virtual void init_branch(Branch&) {}
  // Returns the hooks that change the computation inside the branch in this pass. With the default, null, the branch
  // uses its fused path.
  virtual std::unique_ptr<BranchHooks> inside(Stream&) const { return nullptr; }

  // Returns the input of the branch before the norm, [B, T, D]. The default is stream.x.
  virtual Tensor read(const Stream& stream) const { return stream.x; }
  // Joins the value of the branch to the stream: computes the residual sum and the norm after the sum. The default sets
  // stream.x to norm(combine(stream.x, branch)), or norm(combine_scaled(...)) if row_scale is defined. `norm` is null
  // unless the block's norm is post. `row_scale` [B] is undefined if the factor of every sample is 1. Throws Error if
  // the result of combine() does not have the shape and dtype of the stream.
  virtual void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const;

  // If the formula is exactly y = skip + scale * branch, a gate can return the scale here: [1], [D] ([D, 1, 1] for
  // images), or an undefined tensor for scale 1. The block then fuses the residual sum with the last product of the
  // branch, and does not call combine() and join() (except in a calibrate() pass). With the default, nullopt, the block
  // calls join().
  virtual std::optional<Tensor> plain_scale() const { return std::nullopt; }
  // Returns the parameters that multiply the branch or the skip. If all these parameters are 1, the gate must be a
  // plain sum. If a file of trained weights lacks these parameters, load_pretrained() can add the parameters with the
  // value 1. The default is the scale of plain_scale().
  virtual Tensors scales() const {
    const std::optional<Tensor> scale = plain_scale();
    return scale && scale->defined() ? Tensors{*scale} : Tensors();
  }

  // Sets the initial values that depend on data, from the skip input and the value of the branch at this junction. The
  // block calls this function only in a pass of nn::calibrate(), once for each junction, in the order of the forward
  // pass.
  virtual void calibrate(const Tensor& /*skip*/, const Tensor& /*branch*/, Calibration&) const {}

 protected:
  // Returns combine_scaled() if `row_scale` is defined, and combine() otherwise.
  Tensor mix(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
    return row_scale.defined() ? combine_scaled(skip, branch, row_scale) : combine(skip, branch);
  }
  // Overwrites the values of a parameter. Implementations of calibrate() use this function.
  static void set(const Tensor& parameter, const Tensor& value) { copy_into(value.array(), parameter.array()); }
};

// Returns a parameter [D] with one number per channel in the shape in which it broadcasts over a stream of this layout:
// [D] for tokens, [D, 1, 1] for images. A parameter [1] and an undefined tensor stay as they are.
Tensor per_channel(const Tensor& parameter, Layout layout);

// The gate y = skip + scale * branch, fused with the last product of the branch. `scale` is [1], [D] with one number
// per channel, or undefined for a plain sum. The functions that define the formula are final. A gate with another
// formula must derive from Gate.
class ScaleGate : public Gate {
 public:
  explicit ScaleGate(Tensor scale = {}, const std::string& type_name = "Gate", Layout layout = Layout::tokens)
      : Gate(type_name), scale_(std::move(scale)), layout_(layout) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const final { return gated_residual(skip, branch, scale()); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const final {
    return gated_residual(skip, branch, scale(), row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const final { return scale_.defined() ? scale() * branch : branch; }
  void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const final {
    Gate::join(stream, branch, row_scale, norm);
  }
  std::optional<Tensor> plain_scale() const final { return scale(); }
  Tensors scales() const override { return scale_.defined() ? Tensors{scale_} : Tensors(); }

 protected:
  // Returns the scale in the shape that broadcasts over the stream.
  Tensor scale() const { return per_channel(scale_, layout_); }
  Tensor scale_;
  Layout layout_;
};

// The gate y = skip + alpha * branch. alpha [1] is learned, with the initial value `init`.
class AlphaGate : public ScaleGate {
 public:
  explicit AlphaGate(double init) { scale_ = parameter("alpha", {1}, Init::constant(init), Role::gate); }
};

// The gate y = scale * skip + branch. `scale` is [1], [D] with one number per channel, or undefined for a plain sum.
class SkipScaleGate : public Gate {
 public:
  explicit SkipScaleGate(Tensor scale = {}, Layout layout = Layout::tokens)
      : scale_(std::move(scale)), layout_(layout) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return gated_residual(branch, skip, scale());
  }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(scale_.defined() ? skip * scale() : skip, branch, {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  Tensors scales() const override { return scale_.defined() ? Tensors{scale_} : Tensors(); }

 protected:
  // Returns the scale in the shape that broadcasts over the stream.
  Tensor scale() const { return per_channel(scale_, layout_); }
  Tensor scale_;
  Layout layout_;
};

// The gate y = skip + after(branch), for methods that compute something between the branch and the sum, such as a norm.
// A derived gate must override after(), which maps [B, T, D] to [B, T, D].
class AfterGate : public Gate {
 public:
  // Returns the term that is added to the skip.
  virtual Tensor after(const Tensor& branch) const = 0;
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + after(branch); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, after(branch), {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return after(branch); }
};

// Throws Error ("[gate] expected combine to return ...") unless `combined` has the shape and dtype of `skip`.
void check_joined(const Tensor& skip, const Tensor& combined);

// Runs one forward pass over x, in evaluation mode and without a graph. In this pass, Gate::calibrate() of each gate
// sets the initial values that depend on data (methods admin_profile and act_norm). A model without such gates does not
// change. Observers of blocks are not called. Trainers call this function with their first batch.
void calibrate(Layer& model, const Tensor& x);

// Returns the state of the calibrate() pass that runs on this thread, or null outside such a pass. Blocks use this
// function.
Calibration* calibrating();

// The place of the norms in a block: no norm (none), a norm before each branch (pre), or a norm after each residual sum
// (post).
enum class Norm { none, pre, post };
const char* name(Norm norm);

// A property that a method claims for a freshly initialised network. check_gate() tests the claims of a method.
enum class InitProperty {
  identity_at_init,      // every block is the identity
  zero_branch_gradient,  // the weights inside the branches get gradient 0 in the first step
  loss_is_log_classes    // all logits are 0, so the cross-entropy is ln(classes)
};
// Returns the name for messages and pages, such as "identity at init".
const char* name(InitProperty property);

// How the mean square of the stream grows from branch to branch at initialisation. Blocks whose norm is post need no
// growth law: each norm resets the mean square to 1.
enum class Growth {
  identity,   // no growth: the branches add nothing, or almost nothing
  linear,     // every branch adds the same amount, because every branch reads a normalised stream
  harmonic,   // block l adds 1/l of the amount that the first block adds
  geometric,  // every branch adds the same share of its input, because the branch has no norm
  unstated    // the method states no growth law: signal probes predict nothing and give no warning
};
// Returns the name for messages and pages, such as "linear".
const char* name(Growth growth);

// The training recipe around a gate: initial weights, head, learning-rate factors and warm-up. Recipe{} is the shared
// recipe: with this recipe, methods differ only in their gate.
struct Recipe {
  Base base = Base::truncated_normal;
  bool zero_head = false;   // whether the weights of the classifier have the initial value 0
  double scalar_rate = 1;   // factor of the learning rate for the parameters of Role::gate and Role::shift
  double warmup = 0;        // share of the training steps that belong to the warm-up of the learning rate
  std::string source = {};  // the paper that states the values above
};
// Returns the recipe of DeiT. This recipe is the default of methods whose papers state no recipe.
Recipe deit_recipe();
// Returns the recipe of table 1 in the CaiT paper. This table compares several methods under the same initial weights
// and warm-up.
Recipe cait_recipe();

// Values of a method's constants, by name. An empty value means that the method computes the constant from the depth.
// The text form of an empty value is "by_depth".
using ConstantValues = std::map<std::string, std::optional<double>>;

// The effect on the network of changing the value of a method's constant.
enum class Affects {
  function,    // the network computes other logits from the same weights
  parameters,  // the network has other parameters: weights of a network with another value do not fit
  start        // only the initial values differ: from the same trained weights, the network computes the same logits
};
// Returns the word for this effect in lists of methods: function, parameters or start.
const char* name(Affects affects);

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

// The place of a junction in a stack.
struct JunctionPlace {
  std::int64_t dim = 0;  // width of the stream: the number of channels
  Layout layout = Layout::tokens;
  std::int64_t block = 0, blocks = 1;        // `block`: index of the block, from 0. `blocks`: number of blocks.
  std::int64_t junction = 0, junctions = 1;  // the same for the junction within its block

  // Returns the index of the junction in the stack, from 0, and the number of junctions of the stack. A junction has
  // one branch, so the number is what papers call the number of branches (2N in a transformer encoder of N blocks).
  std::int64_t index() const { return block * junctions + junction; }
  std::int64_t count() const { return blocks * junctions; }
};

// A description of the block for which a method builds gates, with the junction of one gate.
struct GateContext : JunctionPlace {
  std::vector<BranchShape> branches = {};  // the branches of the block, in order
  double norm_eps = 1e-6;
  ConstantValues constants = {};  // the values of all constants of the method
  std::shared_ptr<StepCounter> steps = std::make_shared<StepCounter>();

  // Makes a norm over `width` channels: a LayerNorm for tokens, a BatchNorm2d for images.
  std::unique_ptr<Layer> norm(std::int64_t width) const { return make_norm(layout, width, norm_eps); }
  // Throws Error unless the stream has tokens, for a method that has no form for images. The message begins with `op`.
  void require_tokens(const char* op) const;
  // Returns a reader of the training step, for a gate that changes with the step (nn/gates/training_step.h).
  TrainingStep training_step() const { return StepCounter::reader(steps); }
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
  // Makes the input stream of the first block from x [B, T, D]. If this function is not set, the stream is Stream{x}.
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

// The parts of a method's text form NAME or NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. VALUE is a number or by_depth.
struct MethodText {
  std::string name;
  ConstantValues values = {};  // the constants that the text names
};
// Parses the text form of a method. Throws Error if the text does not have this form. The function does not check that
// the method exists.
MethodText method_text(const std::string& text);

// A choice of method: the text form of a method of the table, or a Method.
//   {.gate = "layerscale"}   {.gate = "layerscale:init=1e-5"}   {.gate = methods::layerscale(1e-5)}
// The constructors throw the errors of method_named(), and Error for a Method without `build`.
class GateChoice {
 public:
  GateChoice(const std::string& text);
  GateChoice(const char* text) : GateChoice(std::string(text)) {}
  GateChoice(Method method);
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
// Builds a gate of type G for each junction. The constructor of G gets the GateContext of the junction, or no
// arguments. gate_per_branch<G> has the form of Method::build.
template <class G>
BlockGates gate_per_branch(const GateContext& context) {
  static_assert(std::is_base_of_v<Gate, G>, "a gate must derive from nn::Gate or from one of its subclasses");
  static_assert(!std::is_abstract_v<G>,
                "this gate has no formula: override Tensor combine(const Tensor& skip, const Tensor& branch) const, "
                "with exactly these parameters");
  static_assert(
      std::is_abstract_v<G> || std::is_constructible_v<G, const GateContext&> || std::is_default_constructible_v<G>,
      "a gate must have a public constructor that takes a const nn::GateContext& or no arguments");
  if constexpr (!std::is_base_of_v<Gate, G>)
    return {};  // the failed static_assert reports the error
  else if constexpr (std::is_constructible_v<G, const GateContext&>)
    return gate_per_junction(context, [](const GateContext& c) { return std::make_unique<G>(c); });
  else if constexpr (std::is_default_constructible_v<G>)
    return gate_per_junction(context, [](const GateContext&) { return std::make_unique<G>(); });
  else
    return {};
}
// Builds a gate of type G for each junction, each constructed from `arguments`.
template <class G, class... Arguments>
BlockGates gates_from(const GateContext& context, const Arguments&... arguments) {
  return gate_per_junction(context, [&](const GateContext&) { return std::make_unique<G>(arguments...); });
}

// Adds a method to the table under a new name. All lists of methods, options such as --gates, studies, reports and
// model cards then include the method. The constants are declared in `method`, and the constructor of the gate reads
// their values from the GateContext:
//   struct Prores : ScaleGate { explicit Prores(const GateContext& c) : ScaleGate(full({1}, 1 / c.constant("T"))) {} };
//   register_gate<Prores>("prores", {.formula = "x + f(LN(x)) / T",
//                                    .constants = {{.name = "T", .standard = 3, .least = 1}}});
// Both functions throw Error if the name is taken, is "all", or has other characters than lower-case letters, digits
// and underscores. Both also throw Error if `build` is missing, if a constant is declared twice, or if a default is
// outside its bounds.
void register_method(const std::string& name, Method method);
template <class G>
void register_gate(const std::string& name, Method method = {}) {
  method.build = gate_per_branch<G>;
  register_method(name, std::move(method));
}

// Returns the names of all methods, in the order of the table. Registered methods come last.
std::vector<std::string> method_names();
// Returns a method of the table from its text form. Throws Error for an unknown name, with the nearest known names in
// the message, and the errors of method_text() and Method::with().
Method method_named(const std::string& text);

}  // namespace plumb::nn
