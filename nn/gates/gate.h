// The gate interface: how a residual method joins a branch to the stream.
//
// The block owns the formula (nn/block.cpp):
//   u = norm(gate.read(stream)) if the block's norm is pre, else gate.read(stream);  f = branch(u);  gate.join(stream,
//   f, norm if it is post)
// which for nearly every method means y = combine(x, f) or y = norm(combine(x, f)). A gate supplies combine, and, where
// its paper asks for it, how the branch's weights start, what happens inside the branch, and what the stream carries.
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

// State of one data-dependent initialisation pass (calibrate, below).
struct Calibration {
  std::optional<double> carried = {};  // what one gate hands to the next
};

class Gate : public Module {
 public:
  explicit Gate(const std::string& type_name = "Gate") : Module(type_name) {}

  // skip, branch [B, T, D] -> the stream after the junction.
  virtual Tensor combine(const Tensor& skip, const Tensor& branch) const = 0;
  // The same with what the branch adds multiplied by row_scale [B], sample by sample (stochastic depth): skip +
  // row_scale (combine - skip) by default, so that a dropped sample passes as it is. A gate that keeps something else
  // of it than skip, such as a multiple, has its own.
  virtual Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const;

  // What passports measure, in the shape of combine(): what the junction adds to what it keeps of the stream. combine -
  // skip by default, which is right for any formula, to the rounding of skip; a gate that adds a term to its skip
  // returns that term, exact however small it is.
  virtual Tensor added(const Tensor& skip, const Tensor& branch) const;
  // The factors with which the gate acts on this stream, in any shape; undefined if it has none. By default its own
  // parameters of Role::gate, end to end, but undefined where one of them is a matrix: such a gate computes its factors
  // from the stream, and returns them here.
  virtual Tensor values(const Tensor& skip) const;

  // Changes how the branch's weights start: scales their declared Init. Called once, before the model is initialised.
  virtual void init_branch(Branch&) {}
  // What the method does inside the branch in this pass; null leaves it its fused path.
  virtual std::unique_ptr<BranchHooks> inside(Stream&) const { return nullptr; }

  // What the branch reads, before the norm: [B, T, D].
  virtual Tensor read(const Stream& stream) const { return stream.x; }
  // The whole junction. By default x = norm(combine(x, branch)); norm is null unless the block's norm is post,
  // row_scale undefined unless samples are dropped.
  virtual void join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const;

  // Where the junction is y = skip + scale * branch and nothing else: the scale, [1], [D] or undefined (1). The block
  // then makes it a part of the branch's last product, and calls neither combine nor join. nullopt: they are called.
  virtual std::optional<Tensor> plain_scale() const { return std::nullopt; }
  // The factors of branch or skip that leave a plain sum where they are 1: the parameters that load_pretrained starts
  // at 1 beside trained weights. By default the scale of plain_scale().
  virtual Tensors scales() const {
    const std::optional<Tensor> scale = plain_scale();
    return scale && scale->defined() ? Tensors{*scale} : Tensors();
  }

  // Sets data-dependent initial values from what the junction sees. Called by calibrate() alone, for each junction in
  // order.
  virtual void calibrate(const Tensor& /*skip*/, const Tensor& /*branch*/, Calibration&) const {}

 protected:
  Tensor mix(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
    return row_scale.defined() ? combine_scaled(skip, branch, row_scale) : combine(skip, branch);
  }
  static void set(const Tensor& parameter, const Tensor& value) {
    copy_into(value.array(), parameter.array());
  }  // for calibrate
};

// y = skip + scale * branch, fused: scale [1], [D], or undefined for a plain sum. A gate with another formula derives
// from Gate.
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

// y = skip + alpha * branch, alpha [1] learned.
class AlphaGate : public ScaleGate {
 public:
  explicit AlphaGate(double init) { scale_ = parameter("alpha", {1}, Init::constant(init), Role::gate); }
};

// y = scale * skip + branch: scale [1] or [D].
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

// y = skip + after(branch): for methods that put something between branch and sum.
class AfterGate : public Gate {
 public:
  virtual Tensor after(const Tensor& branch) const = 0;
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + after(branch); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, after(branch), {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return after(branch); }
};

// Throws "[gate] expected combine to return .." unless `combined` has skip's shape and dtype.
void check_joined(const Tensor& skip, const Tensor& combined);

// One pass over x in evaluation mode, without a graph, in which gates with data-dependent initial values (Admin's
// profile, ActNorm) set them. Changes nothing in a model that has none, and no observer of a block sees it. Trainers
// call it with their first batch.
void calibrate(Layer& model, const Tensor& x);
Calibration* calibrating();  // the pass that runs on this thread, or null; for the block

enum class Norm { none, pre, post };
const char* name(Norm norm);

// What a method promises about a freshly initialised network; tested for every registered method.
enum class InitProperty {
  identity_at_init,      // every block is the identity
  zero_branch_gradient,  // weights inside branches get gradient 0 in the first step
  loss_is_log_classes    // all logits are 0, so cross-entropy is ln(classes)
};
const char* name(InitProperty property);
using Claim [[deprecated("InitProperty")]] = InitProperty;

// How the mean square of the stream grows over branches at init. Blocks whose norm is post need no law: each norm
// resets it to 1.
enum class Growth {
  identity,   // not at all: branches add nothing, or next to it
  linear,     // every branch adds the same: they read a normalised stream
  harmonic,   // block l adds 1/l of what the first adds
  geometric,  // every branch adds the same share of what it reads: no norm
  unstated    // the method states none, and passports predict and warn of none
};
const char* name(Growth growth);

// Base distribution of the weights before a method scales them (the patch embedding's is the same in all:
// fan_in_uniform).
enum class Base {
  truncated_normal,  // std 0.02: ViT, DeiT; what all methods share unless a run asks for each paper's own
  xavier,            // Glorot uniform, q, k, v as three matrices
  xavier_normal,     // Glorot normal, likewise
  xavier_packed,     // Glorot uniform of the packed qkv matrix
  scaled_normal      // std 0.02 sqrt(384 / dim): at any width what DeiT-S, of width 384, has with 0.02
};
const char* name(Base base);                    // in words, for people: "truncated normal, std 0.02"
const std::vector<std::string>& base_names();   // as the enum has them, in its order
Base base_named(const std::string& base_name);  // throws Error, listing the names
Init weight_init(Base base, std::int64_t dim, int packed_parts = 1);  // dim: the width of the stream

// What surrounds a gate in a training: how the weights start, the head, rates and warm-up. Recipe{} is the one that
// makes everything equal but the gate.
struct Recipe {
  Base base = Base::truncated_normal;
  bool zero_head = false;   // the classifier starts at 0
  double scalar_rate = 1;   // times the learning rate, of the gates' and shifts' own parameters
  double warmup = 0;        // share of the steps in which the learning rate rises
  std::string source = {};  // of what is above
};
// For methods whose papers say nothing of their own: DeiT's, after whose recipe the vision transformers among them were
// trained.
Recipe deit_recipe();
Recipe cait_recipe();  // of CaiT's table 1, which compares its columns under one base and warm-up

// Values of a method's constants by name; none: the method computes the constant from the depth ("by_depth").
using ConstantValues = std::map<std::string, std::optional<double>>;

// The part of a network that changes with a constant.
enum class Affects {
  function,    // the logits that it computes from the same weights
  parameters,  // the parameters that it has: weights of another value do not fit
  start        // initial values alone: trained weights compute the same
};
const char* name(Affects affects);

// A constant that a method's formula leaves open, declared by the method: --gate NAME:CONSTANT=VALUE, cards of weights,
// lists and reports follow from it.
struct MethodConstant {
  std::string name;                     // letters, digits and underscores
  std::optional<double> standard = {};  // the value unless another is chosen; none: by depth
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool above = false;  // must be above `least`, not equal to it
  bool whole = false;  // an integer; with bounds 0 and 1: off and on
  Affects affects = Affects::function;
  std::string meaning = {};  // one line, for lists and messages

  std::string expected() const;  // "a number in [0, 1]"
  std::string text(
      std::optional<double> value) const;  // "post_share=0.75", "alpha=by_depth"; reads back as the same double
};

// Where a gate is being built.
struct GateContext {
  std::int64_t dim, heads, hidden;  // widths of stream and MLP
  std::int64_t block, blocks;       // index of the block, number of blocks (a block is attention and MLP)
  double norm_eps = 1e-6;
  ConstantValues constants = {};  // all of the method's

  // The value of a constant that the method declares; `by_depth` where it has none. Without `by_depth` it must have
  // one.
  double constant(const std::string& constant_name, std::optional<double> by_depth = {}) const;
};

// A block's gates and whatever else the method keeps in the block, under the names they get there.
struct BlockGates {
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules;
  Gate* attn = nullptr;  // each one of the modules; one gate may serve both branches
  Gate* mlp = nullptr;
  std::optional<Norm> norm = {};  // of this block, where it differs from the method's

  // Adds a module and returns it.
  template <class M>
  M& add(const std::string& name, std::unique_ptr<M> module) {
    M& m = *module;
    modules.emplace_back(name, std::move(module));
    return m;
  }
};

std::unique_ptr<Layer> make_layer_norm(std::int64_t dim, double eps);

// A row of the table of residual methods.
struct Method {
  std::string name = {};
  Norm norm = Norm::pre;
  std::vector<InitProperty> claims = {};
  Recipe paper = deit_recipe();  // as its paper prescribes
  Growth growth = Growth::linear;
  std::string formula = {};  // one line, for lists and reports
  std::string source = {};   // paper
  std::string counts = {};  // how the paper counts depth, where a constant depends on it: "N blocks", "L = 2N branches"
  std::string use = {};     // when to take it
  std::string pitfalls = {};
  std::vector<MethodConstant> constants = {};  // `build` and `adjust` find their values in GateContext::constants
  std::function<BlockGates(const GateContext&)> build = {};
  // What the norms of the stack are, the final one included.
  std::function<std::unique_ptr<Layer>(std::int64_t dim, double eps)> norm_layer = make_layer_norm;
  // Changes a parameter of a block (name within the block): learning-rate and eps factors.
  std::function<void(const GateContext&, const std::string& name, Parameter&)> adjust = {};
  // What enters the first block, given [B, T, D]; the plain stream if not given.
  std::function<Stream(const Tensor& x)> open = {};
  // What leaves the last one, [B, T, D]; norm is the final norm, or null where the stack has none. norm(x) if not
  // given.
  std::function<Tensor(const Stream&, const Layer* norm)> close = {};
  // Sets the fields that follow from the constants, such as `open` or the claims. Called when they are chosen, with the
  // method as it then is.
  std::function<void(Method&)> follow = {};
  ConstantValues chosen = {};  // set by with(): the constants that are not at their standard value

  bool claims_that(InitProperty c) const;
  // The same method with these constants, the others as they are. Throws for a constant that it does not declare, or a
  // value out of its bounds.
  Method with(const ConstantValues& values) const;
  ConstantValues values() const;                                        // of all constants
  std::optional<double> value(const std::string& constant_name) const;  // throws for one that it does not declare
  std::string label() const;  // the name, and the constants that are not standard: "mix_ln", "mix_ln:post_share=0.75"
  std::string text() const;   // the name and every constant: "mix_ln:post_share=0.25"
};

// The text form of a method, apart: NAME, or NAME:CONSTANT=VALUE[:CONSTANT=VALUE..]. A value is a number, or by_depth.
struct MethodText {
  std::string name;
  ConstantValues values = {};  // those that are written
};
MethodText method_text(const std::string& text);  // throws for a text of another form

// A method by its text form, or one made by hand:
//   {.gate = "layerscale"}   {.gate = "layerscale:init=1e-5"}   {.gate = methods::layerscale(1e-5)}
class GateChoice {
 public:
  GateChoice(const std::string& text);  // throws as method_named does
  GateChoice(const char* text) : GateChoice(std::string(text)) {}
  GateChoice(Method method);
  const Method& operator*() const { return *method_; }
  const Method* operator->() const { return method_.get(); }

 private:
  std::shared_ptr<const Method> method_;
};

// The recipe of a model that is given none: the method's, but with the weights of ViT, as all methods have them.
Recipe recipe_of(const Method& method, const std::optional<Recipe>& given);

// Two gates of type G a block, gate1 for attention and gate2 for the MLP, each made from `arguments`.
template <class G, class... Arguments>
BlockGates two_gates(const Arguments&... arguments) {
  BlockGates gates;
  gates.attn = &gates.add("gate1", std::make_unique<G>(arguments...));
  gates.mlp = &gates.add("gate2", std::make_unique<G>(arguments...));
  return gates;
}
// The same as a Method's build; G is made from a GateContext or from nothing.
template <class G>
BlockGates gate_per_branch(const GateContext& context) {
  static_assert(std::is_base_of_v<Gate, G>, "a gate is a struct that derives from nn::Gate or from a gate that does");
  static_assert(!std::is_abstract_v<G>,
                "this gate lacks its formula: override Tensor combine(const Tensor& skip, const Tensor& branch) const, "
                "with these very parameters");
  static_assert(
      std::is_abstract_v<G> || std::is_constructible_v<G, const GateContext&> || std::is_default_constructible_v<G>,
      "a gate has a public constructor that takes a const nn::GateContext& or nothing");
  if constexpr (!std::is_base_of_v<Gate, G>)
    return {};  // the errors above are enough
  else if constexpr (std::is_constructible_v<G, const GateContext&>)
    return two_gates<G>(context);
  else if constexpr (std::is_default_constructible_v<G>)
    return two_gates<G>();
  else
    return {};
}

// Adds a method under a new name: from then on it is in --gates, in every experiment, in the reports and in cards of
// weights. Its constants are declared here and read where the gate is built:
//   struct Prores : ScaleGate { explicit Prores(const GateContext& c) : ScaleGate(full({1}, 1 / c.constant("T"))) {} };
//   register_gate<Prores>("prores", {.formula = "x + f(LN(x)) / T", .constants = {{.name = "T", .standard = 3, .least =
//   1}}});
void register_method(const std::string& name, Method method);
template <class G>
void register_gate(const std::string& name, Method method = {}) {
  method.build = gate_per_branch<G>;
  register_method(name, std::move(method));
}

std::vector<std::string> method_names();  // in table order, registered ones last
[[deprecated("method_names")]] inline std::vector<std::string> gate_names() { return method_names(); }
// A method of the table by its text form. Throws, with the nearest name or some of them, for an unknown name, and as
// method_text() and Method::with() do.
Method method_named(const std::string& text);

}  // namespace plumb::nn
