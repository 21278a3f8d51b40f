// The gate interface. A gate defines how a residual method adds the value of a branch (attention or MLP) to the stream.
// A custom method derives a gate from Gate, or from one of the classes below it, and is registered with
// register_gate().
//
// For each of its two branches, a block (nn/block.cpp) computes
//   u = gate.read(stream)         followed by the block's norm if that is pre
//   f = branch(u)
//   gate.join(stream, f, norm)    norm is null unless the block's norm is post
// For most methods this amounts to y = combine(x, f) or y = norm(combine(x, f)). A gate must implement combine(). If
// its paper asks for it, a gate also changes how the weights of the branch start, the computation inside the branch, or
// the tensors that the stream carries.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/branch.h"
#include "nn/stream.h"

namespace plumb::nn {

// State of one calibrate() pass. All gates of the model share it; Gate::calibrate() reads and sets it.
struct Calibration {
  std::optional<double> carried = {};  // a value that each gate leaves for the next one; none before the first
};

// Base class of all gates. A derived gate must override combine(); every other function has a default. It registers its
// parameters with parameter() (nn/module.h), under Role::gate if they scale the branch or the stream. Shapes below: B
// samples, T tokens, D the width of the stream. `type_name` is the gate's name in messages while it has no parent.
class Gate : public Module {
 public:
  explicit Gate(const std::string& type_name = "Gate") : Module(type_name) {}

  // Returns the stream after the residual sum and before any norm. `skip` [B, T, D] is the stream before the branch,
  // `branch` [B, T, D] is the value of the branch. The result must have the shape and dtype of `skip`.
  virtual Tensor combine(const Tensor& skip, const Tensor& branch) const = 0;
  // Returns combine(skip, branch) in which the contribution of the branch to sample b is multiplied by row_scale[b];
  // row_scale is [B] (stochastic depth). The default is skip + row_scale (combine(skip, branch) - skip), so a dropped
  // sample, with factor 0, keeps `skip` unchanged. Override it if a dropped sample must keep something else, such as a
  // multiple of `skip`.
  virtual Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const;

  // Returns the term that the gate adds to the part of the stream that it keeps, in the shape of combine(). Signal
  // probes measure this term. The default, combine(skip, branch) - skip, is correct for every formula up to the
  // rounding of `skip`. A gate that adds a term to `skip` should return that term, which is exact even if it is tiny.
  virtual Tensor added(const Tensor& skip, const Tensor& branch) const;
  // Returns the factors that the gate applies to this stream, in any shape; undefined if the gate has none. Signal
  // probes measure them. The default is the gate's own parameters of Role::gate, concatenated; it is undefined if one
  // of these parameters is a matrix. A gate that has such a matrix computes its factors from the stream, and should
  // return them here.
  virtual Tensor values(const Tensor& skip) const;

  // Changes how the weights of the branch start, by scaling their declared Init (Linear::scale_init,
  // Branch::scale_value_path). The block calls this once, in its constructor, before the model is initialised.
  virtual void init_branch(Branch&) {}
  // Returns the hooks that change the computation inside the branch in this pass. The default, null, leaves the branch
  // its fused path.
  virtual std::unique_ptr<BranchHooks> inside(Stream&) const { return nullptr; }

  // Returns the input of the branch, [B, T, D], before the norm. The default is stream.x.
  virtual Tensor read(const Stream& stream) const { return stream.x; }
  // Joins the value of the branch to the stream: the residual sum, and the norm after it. The default sets stream.x to
  // norm(combine(stream.x, branch)), or norm(combine_scaled(...)) if row_scale is defined. `norm` is null unless the
  // block's norm is post. `row_scale` [B] is undefined if the factor of every sample is 1. Throws Error if combine()
  // returns another shape or dtype than the stream's.
  virtual void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const;

  // If the junction is exactly y = skip + scale * branch, returns the scale: [1], [D], or undefined for 1. The block
  // then fuses the residual sum with the last product of the branch, and calls neither combine() nor join() (except in
  // a calibrate() pass). The default, nullopt, makes the block call them.
  virtual std::optional<Tensor> plain_scale() const { return std::nullopt; }
  // Returns the parameters that multiply the branch or the skip and leave a plain sum if they are 1. If a file of
  // trained weights lacks them, load_pretrained() can add them with the value 1. The default is the scale of
  // plain_scale().
  virtual Tensors scales() const {
    const std::optional<Tensor> scale = plain_scale();
    return scale && scale->defined() ? Tensors{*scale} : Tensors();
  }

  // Sets the initial values that depend on data, from the skip input and the value of the branch at this junction. Only
  // calibrate() calls this, once for each junction, in the order of the forward pass.
  virtual void calibrate(const Tensor& /*skip*/, const Tensor& /*branch*/, Calibration&) const {}

 protected:
  // combine(), or combine_scaled() if row_scale is defined.
  Tensor mix(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
    return row_scale.defined() ? combine_scaled(skip, branch, row_scale) : combine(skip, branch);
  }
  // Overwrites the values of a parameter; for calibrate().
  static void set(const Tensor& parameter, const Tensor& value) { copy_into(value.array(), parameter.array()); }
};

// y = skip + scale * branch, fused with the branch's last product. `scale` is [1], [D], or undefined for a plain sum.
// The functions that define the formula are final: a gate with another formula must derive from Gate.
class ScaleGate : public Gate {
 public:
  explicit ScaleGate(Tensor scale = {}, const std::string& type_name = "Gate")
      : Gate(type_name), scale_(std::move(scale)) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const final { return gated_residual(skip, branch, scale_); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const final {
    return gated_residual(skip, branch, scale_, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const final { return scale_.defined() ? scale_ * branch : branch; }
  void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const final {
    Gate::join(stream, branch, row_scale, norm);
  }
  std::optional<Tensor> plain_scale() const final { return scale_; }

 protected:
  Tensor scale_;
};

// y = skip + alpha * branch, where alpha [1] is learned and starts at `init`.
class AlphaGate : public ScaleGate {
 public:
  explicit AlphaGate(double init) { scale_ = parameter("alpha", {1}, Init::constant(init), Role::gate); }
};

// y = scale * skip + branch. `scale` is [1], [D], or undefined for a plain sum.
class SkipScaleGate : public Gate {
 public:
  explicit SkipScaleGate(Tensor scale = {}) : scale_(std::move(scale)) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return gated_residual(branch, skip, scale_);
  }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(scale_.defined() ? skip * scale_ : skip, branch, {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  Tensors scales() const override { return scale_.defined() ? Tensors{scale_} : Tensors(); }

 protected:
  Tensor scale_;
};

// y = skip + after(branch), for methods that compute something between the branch and the sum, such as a norm. A
// derived gate must override after(), which maps [B, T, D] to [B, T, D].
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

// Runs one forward pass over x, in evaluation mode and without a graph, in which gates set their data-dependent initial
// values (Gate::calibrate; methods admin_profile and act_norm have some). The pass changes nothing in a model without
// such gates, and observers of blocks are not called. Trainers call this function with their first batch.
void calibrate(Layer& model, const Tensor& x);

// Returns the state of the calibrate() pass that runs on this thread, or null. For blocks.
Calibration* calibrating();

// The norm of a block's branches: none, before each branch (pre), or after each residual sum (post).
enum class Norm { none, pre, post };
const char* name(Norm norm);

// A property that a method claims for a freshly initialised network. check_gate() tests the claims of a method.
enum class InitProperty {
  identity_at_init,      // every block is the identity
  zero_branch_gradient,  // the weights inside the branches get gradient 0 in the first step
  loss_is_log_classes    // all logits are 0, so the cross-entropy is ln(classes)
};
// The name in messages and pages, such as "identity_at_init".
const char* name(InitProperty property);
// The former name of InitProperty.
using Claim [[deprecated("InitProperty")]] = InitProperty;

// How the mean square of the stream grows from branch to branch at initialisation. Blocks whose norm is post need no
// such law: each norm resets the mean square to 1.
enum class Growth {
  identity,   // no growth: the branches add nothing, or almost nothing
  linear,     // every branch adds the same amount, because it reads a normalised stream
  harmonic,   // block l adds 1/l of the amount that the first block adds
  geometric,  // every branch adds the same share of the stream that it reads, because there is no norm
  unstated    // the method states no law: signal probes predict nothing and give no warning
};
// The name in messages and pages, such as "linear".
const char* name(Growth growth);

// Distribution of the initial weights before a method scales them. The patch embedding is not affected: it always
// starts with fan_in_uniform.
enum class Base {
  truncated_normal,  // std 0.02, as in ViT and DeiT; the default for all methods
  xavier,            // Glorot uniform; q, k and v count as three matrices
  xavier_normal,     // Glorot normal; q, k and v count as three matrices
  xavier_packed,     // Glorot uniform; q, k and v count as one packed matrix
  scaled_normal      // std 0.02 sqrt(384 / dim): the same as truncated_normal at width 384, the width of DeiT-S
};
// The distribution in words, for people: "truncated normal, std 0.02".
const char* name(Base base);
// The names of the enumerators of Base, in their order.
const std::vector<std::string>& base_names();
// The distribution of this name. Throws Error, which lists the names, if there is none.
Base base_named(const std::string& base_name);
// The Init of a weight under this distribution. dim: the width of the stream. packed_parts: the number of matrices
// packed in the weight (3 for qkv).
Init weight_init(Base base, std::int64_t dim, int packed_parts = 1);

// The training recipe around a gate: initial weights, head, learning-rate factors and warm-up. Recipe{} is the common
// recipe under which methods differ only in their gate.
struct Recipe {
  Base base = Base::truncated_normal;
  bool zero_head = false;   // whether the weights of the classifier start at 0
  double scalar_rate = 1;   // factor of the learning rate for the parameters of Role::gate and Role::shift
  double warmup = 0;        // share of the training steps in which the learning rate rises
  std::string source = {};  // paper that the values above come from
};
// The recipe of DeiT. It is used for methods whose papers state no recipe.
Recipe deit_recipe();
// The recipe of table 1 in the CaiT paper, which compares several methods under the same initial weights and warm-up.
Recipe cait_recipe();

// Values of a method's constants by name. An empty value means that the method computes the constant from the depth;
// its text form is "by_depth".
using ConstantValues = std::map<std::string, std::optional<double>>;

// The part of a network that changes with a constant.
enum class Affects {
  function,    // the logits that the network computes from the same weights
  parameters,  // the set of parameters: weights of a network with another value do not fit
  start        // only the initial values: trained weights compute the same function
};
// The words in lists and pages of methods.
const char* name(Affects affects);

// A constant that the formula of a method leaves open. The method declares it; the option --gate NAME:CONSTANT=VALUE,
// the cards of weight files, lists and reports follow from the declaration.
struct MethodConstant {
  std::string name;                     // letters, digits and underscores
  std::optional<double> standard = {};  // the default value; empty: computed from the depth
  // The bounds of the value.
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool above = false;  // whether the value must be above `least`, not equal to it
  bool whole = false;  // whether the value must be an integer; with the bounds 0 and 1 it is a switch, off or on
  Affects affects = Affects::function;
  std::string meaning = {};  // one line, for lists and messages

  // The accepted values in words: "a number in [0, 1]".
  std::string expected() const;
  // The constant with this value as text, "post_share=0.75" or "alpha=by_depth". Reading the text gives the same
  // double.
  std::string text(std::optional<double> value) const;
};

// The block for which a method builds its gates.
struct GateContext {
  std::int64_t dim, heads, hidden;  // widths of stream and MLP, and number of heads
  std::int64_t block, blocks;       // index of this block from 0, and number of blocks; a block is attention and MLP
  double norm_eps = 1e-6;
  ConstantValues constants = {};  // the values of all constants of the method

  // Returns the value of a constant that the method declares, or `by_depth` if the constant has no value. Throws Error
  // for a constant that is not declared, and for one without a value if `by_depth` is not given.
  double constant(const std::string& constant_name, std::optional<double> by_depth = {}) const;
};

// The gates of one block, and the other modules that the method keeps in the block.
struct BlockGates {
  // The modules, with the names under which the block registers them.
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules;
  // The gates of the two branches. Each must be one of `modules`; both may be the same gate.
  Gate* attn = nullptr;
  Gate* mlp = nullptr;
  // The norm of this block, if it differs from the method's.
  std::optional<Norm> norm = {};

  // Adds a module under a name, and returns the module.
  template <class M>
  M& add(const std::string& name, std::unique_ptr<M> module) {
    M& m = *module;
    modules.emplace_back(name, std::move(module));
    return m;
  }
};

// Makes a LayerNorm of width dim.
std::unique_ptr<Layer> make_layer_norm(std::int64_t dim, double eps);

// A residual method: a row of the table of methods (nn/gates/gates.cpp).
struct Method {
  std::string name = {};
  Norm norm = Norm::pre;
  std::vector<InitProperty> claims = {};
  Recipe paper = deit_recipe();  // the training recipe of its paper
  Growth growth = Growth::linear;
  std::string formula = {};  // one line, for lists and reports
  std::string source = {};   // the paper
  std::string counts = {};   // how the paper counts depth, if a constant depends on it: "N blocks", "L = 2N branches"
  std::string use = {};      // when to use the method
  std::string pitfalls = {};
  // The constants of the method. `build` and `adjust` find their values in GateContext::constants.
  std::vector<MethodConstant> constants = {};
  // Builds the gates of one block. Every method must have it.
  std::function<BlockGates(const GateContext&)> build = {};
  // Makes the norms of the stack, including the final one.
  std::function<std::unique_ptr<Layer>(std::int64_t dim, double eps)> norm_layer = make_layer_norm;
  // Changes the learning-rate and eps factors of a parameter of a block. `name` is the parameter's name within the
  // block.
  std::function<void(const GateContext&, const std::string& name, Parameter&)> adjust = {};
  // Makes the stream that enters the first block from x [B, T, D]. If not set, the stream is x.
  std::function<Stream(const Tensor& x)> open = {};
  // Makes the output [B, T, D] from the stream that leaves the last block. `norm` is the final norm, or null if the
  // stack has none. If not set, the output is norm(x).
  std::function<Tensor(const Stream&, const Layer* norm)> close = {};
  // Sets the fields that depend on the constants, such as `open` or `claims`. with() calls it with the method in which
  // the constants are already chosen.
  std::function<void(Method&)> follow = {};
  ConstantValues chosen = {};  // the constants that differ from their default; with() sets it

  // Whether the method claims this property.
  bool claims_that(InitProperty c) const;
  // Returns this method with other values of some constants. Throws Error for a constant that the method does not
  // declare, and for a value outside its bounds.
  Method with(const ConstantValues& values) const;
  // The values of all constants.
  ConstantValues values() const;
  // The value of one constant. Throws Error for a constant that the method does not declare.
  std::optional<double> value(const std::string& constant_name) const;
  // The name and the constants that differ from their default: "mix_ln", "mix_ln:post_share=0.75".
  std::string label() const;
  // The name and every constant: "mix_ln:post_share=0.25".
  std::string text() const;
};

// The text form of a method, taken apart: NAME or NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. VALUE is a number or
// by_depth.
struct MethodText {
  std::string name;
  ConstantValues values = {};  // the constants that the text names
};
// Parses the text form of a method. Throws Error if the text has another form; the name is not looked up.
MethodText method_text(const std::string& text);

// A choice of method: the text form of a method of the table, or a Method.
//   {.gate = "layerscale"}   {.gate = "layerscale:init=1e-5"}   {.gate = methods::layerscale(1e-5)}
// Throws Error as method_named() does, and for a Method without `build`.
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

// The recipe of a model: `given` if it has a value, else the recipe of the method's paper, but with the initial weights
// of ViT (Base::truncated_normal), which all methods share.
Recipe recipe_of(const Method& method, const std::optional<Recipe>& given);

// Builds two gates of type G for a block: gate1 for attention and gate2 for the MLP, each constructed from `arguments`.
template <class G, class... Arguments>
BlockGates two_gates(const Arguments&... arguments) {
  BlockGates gates;
  gates.attn = &gates.add("gate1", std::make_unique<G>(arguments...));
  gates.mlp = &gates.add("gate2", std::make_unique<G>(arguments...));
  return gates;
}
// Builds two gates of type G, in the form of Method::build. G is constructed from the GateContext, or without
// arguments.
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
    return two_gates<G>(context);
  else if constexpr (std::is_default_constructible_v<G>)
    return two_gates<G>();
  else
    return {};
}

// Adds a method to the table under a new name. Lists (--gates), every experiment, reports and cards of weights then
// know it. Its constants are declared here and read by the constructor of the gate:
//   struct Prores : ScaleGate { explicit Prores(const GateContext& c) : ScaleGate(full({1}, 1 / c.constant("T"))) {} };
//   register_gate<Prores>("prores", {.formula = "x + f(LN(x)) / T",
//                                    .constants = {{.name = "T", .standard = 3, .least = 1}}});
// Both functions throw Error if the name is taken or has other characters than lower-case letters, digits and
// underscores, if `build` is missing, or if a constant is declared twice or has a default outside its bounds.
void register_method(const std::string& name, Method method);
template <class G>
void register_gate(const std::string& name, Method method = {}) {
  method.build = gate_per_branch<G>;
  register_method(name, std::move(method));
}

// The names of all methods, in the order of the table; registered methods come last.
std::vector<std::string> method_names();
// The former name of method_names().
[[deprecated("method_names")]] inline std::vector<std::string> gate_names() { return method_names(); }
// Returns a method of the table from its text form. Throws Error for an unknown name (the message suggests the nearest
// ones), and as method_text() and Method::with() do.
Method method_named(const std::string& text);

}  // namespace plumb::nn
