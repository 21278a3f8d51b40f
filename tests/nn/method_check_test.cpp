// Tests that every method of the table passes check_method(). For each rule, a gate below breaks only this rule.
#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "core/atomic_file.h"
#include "nn/blocks/stack.h"
#include "nn/conformance/method_check.h"
#include "nn/conformance/networks.h"
#include "nn/gates/gate_forms.h"
#include "nn/gates/method.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// A method that passes every rule, x + (1 + a) f(LN(x)). Each gate below is this method with one broken rule.
struct Sound : nn::Gate {
  Tensor a = parameter("a", {1}, nn::Init::constant(0), Role::gate);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + (1 + a) * branch; }
};

template <class G>
nn::Method method_of(std::vector<nn::InitProperty> claims = {}) {
  return {.name = "under_test",
          .claims = std::move(claims),
          .formula = "x + f(x)",
          .source = "test",
          .build = nn::gates_from<G>};
}

std::vector<std::string> broken_rules(const nn::Method& method) {
  std::vector<std::string> broken;
  for (const nn::RuleResult& r : nn::check_method(method).rules)
    if (!r.passed) broken.push_back(r.rule);
  return broken;
}

std::string detail_of(const nn::MethodReport& report, const std::string& rule) {
  const auto found = std::ranges::find(report.rules, rule, &nn::RuleResult::rule);
  REQUIRE(found != report.rules.end());
  return found->detail;
}
std::string detail_of(const nn::MethodChoice& method, const std::string& rule) {
  return detail_of(nn::check_method(method), rule);
}

// Checks that the method passes all rules but `rule`, and passes this rule only if `passes`. Returns the detail of the
// rule.
std::string detail_of_only(const nn::MethodChoice& method, const std::string& rule, bool passes) {
  const nn::MethodReport report = nn::check_method(method);
  INFO(report.text());
  for (const nn::RuleResult& r : report.rules) CHECK(r.passed == (passes || r.rule != rule));
  return detail_of(report, rule);
}

using Broken = std::vector<std::string>;

struct WrongGradient : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    const Tensor b = (1 + a) * branch;
    return skip + record("slack", b.array(), {b}, [](const Tensor& dy) { return Tensors{dy * 1.01}; });
  }
};

// A gate with a correct gradient. The second-order gradient is wrong, because the first-order gradient is treated as a
// constant.
struct WrongSecondOrder : nn::AfterGate {
  Tensor a = parameter("a", {1}, nn::Init::constant(0), Role::gate);
  Tensor after(const Tensor& branch) const override {
    const Tensor x = (1 + a) * branch, value = tanh(x).detach();
    return record("frozen_tanh", value.array(), {x},
                  [value](const Tensor& dy) { return Tensors{dy * (1 - value * value)}; });
  }
};

struct OtherFusedSum : Sound {
  std::optional<Tensor> plain_scale() const override { return 2 + a; }
};

struct MixedSamples : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch - 0.1 * mean(branch, {0}, true));
  }
};

struct Decaying : nn::Gate {
  Tensor a = parameter("a", {1}, nn::Init::constant(1), Role::weight);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + a * branch; }
};

struct MadeToDecay : Sound {  // has a parameter whose role does not decay, but whose decay factor is not 0
  MadeToDecay() { own("a").decay_factor() = 0.5; }
};

struct Idle : Sound {  // has a parameter whose gradient is always 0
  Tensor idle = parameter("idle", {1}, nn::Init::constant(1), Role::gate);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch) + idle * 0;
  }
};

struct ManyIdle : Sound {
  std::vector<Tensor> idle;
  ManyIdle() {
    for (const char* name : {"i1", "i2", "i3", "i4", "i5", "i6", "i7"})
      idle.push_back(parameter(name, {1}, nn::Init::constant(1), Role::gate));
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    Tensor y = Sound::combine(skip, branch);
    for (const Tensor& t : idle) y = y + t * 0;
    return y;
  }
};

struct WithoutStochasticDepth : Sound {
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor&) const override {
    return combine(skip, branch);
  }
};

// A gate that adds the input of the previous block, and keeps this input outside the stream. When checkpoint() computes
// a block again, the gate finds the input of another pass.
struct OutOfSight : Sound {
  OutOfSight(std::shared_ptr<Tensor> kept, const nn::GateContext& c, bool attention)
      : previous(std::move(kept)),
        keeps(attention),
        uses(attention && c.block > 0),
        last(!attention && c.block + 1 == c.blocks) {}
  void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    const Tensor before = keeps ? std::exchange(*previous, s.x) : Tensor();
    Gate::join(s, branch, row_scale, norm);
    if (uses && before.defined() && before.shape() == s.x.shape() && before.dtype() == s.x.dtype() &&
        before.device() == s.x.device())
      s.x = s.x + before * 0.5;
    if (last) *previous = Tensor();
  }
  std::shared_ptr<Tensor> previous;
  bool keeps, uses, last;
};

struct DeviceDependent : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch) * (skip.dtype() == DType::f32 ? 1.01 : 1.0);
  }
};

struct Forgetful : Sound {  // keeps data-dependent state outside its parameters
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch * scale);
  }
  void calibrate(const Tensor&, const Tensor& branch, std::optional<double>&) const override {
    scale = 1 + std::abs(mean(branch).item());
  }
  mutable double scale = 1;
};

struct Exploding : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return Sound::combine(skip * 10, branch); }
};

struct Noting : Sound {  // changes a parameter in each pass
  Tensor used = parameter("used", {1}, nn::Init::constant(0), Role::gate);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    if (used.values()[0] == 0) set(used, ones_like(used));
    return skip + (1 + a + used * 0.01) * branch;
  }
};

struct IgnoredRowScale : Sound {  // ignores row_scale in join(), although combine_scaled() uses row_scale
  void join(nn::Stream& s, const Tensor& branch, const Tensor&, const nn::Layer*) const override {
    s.x = combine(s.x, branch);
  }
};

struct NormAfterWithoutScaled : nn::Gate {  // a norm removes the factor of a kept sample
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return combine(skip, gated_residual(zeros_like(branch), branch, {}, row_scale));
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + layer_norm(branch, ones({branch.dim(-1)}, {branch.dtype(), branch.device()}),
                             zeros({branch.dim(-1)}, {branch.dtype(), branch.device()}), 1e-6);
  }
};

struct ForgottenChild : Sound {  // uses a layer that it does not register
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, mixed(branch));
  }
  nn::Linear mixed{{.in = 8, .out = 8}};
};

struct PastParameter : Sound {  // has a variable that is not registered
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return Sound::combine(skip, branch * b); }
  Tensor b = variable(ones({1}));
};

struct OwnWeights : Sound {  // multiplies the skip by a matrix, also for dropped samples
  OwnWeights() {
    mix.each_parameter([](const std::string&, nn::Parameter& p) { p.decay_factor() = 0; });
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip + mix(skip), branch);
  }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip + mix(skip), (1 + a) * branch, {}, row_scale);
  }
  nn::Child<nn::Linear> mix{this, "mix", {.in = 8, .out = 8}};
};

struct OneToken : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return slice(Sound::combine(skip, branch), 1, 0, 1);
  }
};

struct NotANumber : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch) * std::nan("");
  }
};

// Reads the step of the RandomScope, which is 0 in evaluation.
struct StepOfTraining : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + (Sound::combine(skip, branch) - skip) * (1 + 0.1 * random_state().step);
  }
};

// Draws random numbers in training, and evaluates the expected value.
struct Drawing : Sound {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, training() ? dropout(branch, 0.25) : branch);
  }
};

// Draws random numbers in training, and reads the step of the RandomScope, which is 0 in evaluation.
struct DrawingAtStep : StepOfTraining {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return StepOfTraining::combine(skip, training() ? dropout(branch, 0.25) : branch);
  }
};

struct HugeLater : Sound {
  explicit HugeLater(const nn::GateContext& c) : step(c.training_step()) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return step() > 0 ? skip * 1e30 : Sound::combine(skip, branch);
  }
  nn::TrainingStep step;
};

struct FollowsStep : Sound {
  explicit FollowsStep(const nn::GateContext& c) : step(c.training_step()) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + (Sound::combine(skip, branch) - skip) * (1 + 0.1 * static_cast<double>(step()));
  }
  nn::TrainingStep step;
};

// Draws random numbers in training, and follows the training step.
struct DrawingAndFollowing : FollowsStep {
  using FollowsStep::FollowsStep;
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return FollowsStep::combine(skip, training() ? dropout(branch, 0.25) : branch);
  }
};

// Counts its training passes in a statistic.
struct Counting : Sound {
  Tensor count = parameter("count", {1}, nn::Init::constant(0), Role::statistic);
  Tensor read(const nn::Stream& s) const override {
    if (training() && current_repeat() == Repeat::none) set(count, count.detach() + 1.0);
    return s.x;
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + (Sound::combine(skip, branch) - skip) * (1 + 0.1 * count.detach());
  }
};

// The gates of a pair of junctions. The second gate adds a multiple of the input of the first gate. In a block with an
// odd number of junctions, the last gate has no partner, and the output does not depend on the parameter b of this
// gate.
struct FirstOfPair : Sound {
  Tensor b = parameter("b", {1}, nn::Init::constant(0.1), Role::gate);
  void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    s.carried = {b * s.x};
    Gate::join(s, branch, row_scale, norm);
  }
};
struct SecondOfPair : Sound {
  void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    Gate::join(s, branch, row_scale, norm);
    s.x = s.x + s.carried.at(0);
    s.carried.clear();
  }
};

struct ReadsSecondBranch : Sound {  // reads the shape of the second branch, which a block of one junction does not have
  explicit ReadsSecondBranch(const nn::GateContext& c) : wide(c.branches.at(1).hidden > 8) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return wide ? Sound::combine(skip, branch) : Sound::combine(skip, branch * 0.5);
  }
  bool wide;
};

struct InfiniteAtOneJunction : Sound {  // has the factor 1 - ln(junctions - 1): 1 for a transformer block
  explicit InfiniteAtOneJunction(const nn::GateContext& c)
      : factor(1 - std::log(static_cast<double>(c.junctions - 1))) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return Sound::combine(skip, branch * factor);
  }
  double factor;
};

struct WithoutThirdBranch : Sound {  // ignores the branches after the second junction of a block
  explicit WithoutThirdBranch(const nn::GateContext& c) : ignores(c.junction > 1) {
    if (!ignores) b = parameter("b", {1}, nn::Init::constant(1), Role::gate);
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return ignores ? skip * (1 + a) : Sound::combine(skip, branch * b);
  }
  bool ignores;
  Tensor b;
};

// A method of two gates in each block, whatever the number of junctions is.
nn::Method two_gates() {
  nn::Method method = method_of<Sound>();
  method.build = [](const nn::GateContext&) {
    nn::BlockGates gates;
    gates.add_gate(std::make_unique<Sound>());
    gates.add_gate(std::make_unique<Sound>());
    return gates;
  };
  return method;
}

// A method for pairs of junctions.
nn::Method pairs() {
  nn::Method method = method_of<Sound>();
  method.build = [](const nn::GateContext& c) {
    return nn::gate_per_junction(c, [](const nn::GateContext& at) -> std::unique_ptr<nn::Gate> {
      if (at.junction % 2 == 0) return std::make_unique<FirstOfPair>();
      return std::make_unique<SecondOfPair>();
    });
  };
  return method;
}

// A method that refuses every block that does not have two junctions, with require() or with a plain Error.
nn::Method only_two(bool by_require) {
  nn::Method method = method_of<Sound>();
  method.build = [by_require](const nn::GateContext& c) {
    if (by_require) c.require(c.junctions == 2, "[under_test] expected blocks of two junctions, got {}", c.junctions);
    check(c.junctions == 2, "[under_test] expected blocks of two junctions, got {}", c.junctions);
    return nn::gates_from<Sound>(c);
  };
  return method;
}

struct Dead : nn::Gate {
  Tensor a = parameter("a", {1}, nn::Init::constant(0), Role::gate);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + a * branch; }
  void init_branch(nn::Branch& branch) override { branch.last().weight_init() = branch.last().weight_init().scaled(0); }
};

}  // namespace

TEST_CASE("every method of the table passes check_method(), and a page describes each rule") {
  const std::string page = read_file(source_dir() + "/docs/own_gates.md");
  for (const nn::RuleResult& r : nn::check_method("pre").rules)
    CHECK_THAT(page, contains("\n| " + r.rule) || contains(", " + r.rule));
  for (const std::string& name : built_in_gates) {
    const nn::MethodReport report = nn::check_method(name);
    INFO(report.text());
    CHECK(report.passed());
    CHECK(report.rules.size() == 21);
    const std::string junctions = detail_of(report, "junctions");
    CHECK_THAT(junctions, contains("2 blocks of 3 junctions (mlp, attn, mlp2): every parameter learns"));
    if (name == "b2t")
      CHECK_THAT(junctions, contains("3 blocks of 1 junction (mlp): not applicable, [b2t] expected blocks of at least "
                                     "two branches, got 1"));
    else
      CHECK_THAT(junctions, contains("3 blocks of 1 junction (mlp): every parameter learns"));
  }
}

TEST_CASE("check_method() finds each broken rule and only that one") {
  using enum nn::InitProperty;
  CHECK(broken_rules(method_of<Sound>()) == Broken{});
  CHECK(broken_rules(method_of<ForgottenChild>()) == Broken{"registered"});
  CHECK(broken_rules(method_of<PastParameter>()) == Broken{"registered"});
  CHECK(broken_rules(method_of<OwnWeights>()) == Broken{});
  CHECK(broken_rules(method_of<WrongGradient>()) == Broken{"gradients"});
  CHECK(broken_rules(method_of<WrongSecondOrder>()) == Broken{"second order"});
  CHECK(broken_rules(method_of<Sound>({identity_at_init})) == Broken{"identity at init"});
  CHECK(broken_rules(method_of<Sound>({zero_branch_gradient})) == Broken{"zero branch gradient"});
  CHECK(broken_rules(method_of<Sound>({loss_is_log_classes})) == Broken{"loss ln(classes)"});
  CHECK(broken_rules(method_of<Decaying>()) == Broken{"roles"});
  CHECK(broken_rules(method_of<MadeToDecay>()) == Broken{"roles"});
  CHECK(broken_rules(method_of<Idle>()) == Broken{"learning"});
  CHECK(broken_rules(method_of<WithoutStochasticDepth>()) == Broken{"stochastic depth"});
  CHECK(broken_rules(method_of<IgnoredRowScale>()) == Broken{"stochastic depth"});
  CHECK(broken_rules(method_of<OtherFusedSum>()) == Broken{"fused sum"});
  CHECK(broken_rules(method_of<MixedSamples>()) == Broken{"samples"});
  CHECK(broken_rules(method_of<NormAfterWithoutScaled>()) == Broken{"stochastic depth"});
  CHECK(broken_rules(method_of<Noting>()) == Broken{"initial values"});
  nn::Method hidden = method_of<Sound>();
  const auto kept = std::make_shared<Tensor>();
  hidden.build = [kept](const nn::GateContext& c) {
    return nn::gate_per_junction(
        c, [&](const nn::GateContext& at) { return std::make_unique<OutOfSight>(kept, at, at.junction == 0); });
  };
  CHECK(broken_rules(hidden) == Broken{"checkpoint"});
  *kept = Tensor();
  const std::vector<std::string> nan_breaks = broken_rules(method_of<NotANumber>({identity_at_init}));
  for (const char* rule : {"gradients", "identity at init", "stochastic depth", "devices and dtypes", "depth"})
    CHECK(std::ranges::find(nan_breaks, rule) != nan_breaks.end());
  CHECK(broken_rules(method_of<DeviceDependent>()) == Broken{"devices and dtypes"});
  CHECK(broken_rules(method_of<Forgetful>()) == Broken{"save and load"});
  CHECK(broken_rules(method_of<Exploding>()) == Broken{"depth"});
  CHECK(broken_rules(method_of<StepOfTraining>()) == Broken{"steps"});
  CHECK(broken_rules(method_of<FollowsStep>()) == Broken{});
  CHECK(broken_rules(method_of<Counting>()) == Broken{});
  CHECK(broken_rules(method_of<DrawingAndFollowing>()) == Broken{});
  const std::vector<std::string> huge_breaks = broken_rules(method_of<HugeLater>());
  CHECK(std::ranges::find(huge_breaks, "steps") != huge_breaks.end());
  CHECK(broken_rules(method_of<Dead>()) == Broken{"builds"});
  nn::Method nameless = method_of<Sound>();
  nameless.formula.clear();
  CHECK(broken_rules(nameless) == Broken{"documented"});
}

TEST_CASE("check_method() checks the training steps that the caller names") {
  const auto steps_passed = [](const nn::MethodChoice& method, const std::vector<std::uint32_t>& steps) {
    for (const nn::RuleResult& r : nn::check_method(method, steps).rules)
      if (r.rule == "steps") return r.passed;
    return false;
  };
  CHECK(steps_passed(method_of<StepOfTraining>(), {0}));
  CHECK_FALSE(steps_passed(method_of<StepOfTraining>(), {0, 3}));
  CHECK_THAT(detail_of(method_of<StepOfTraining>(), "steps"),
             contains("after step 10, evaluation differs from training") && contains("GateContext::training_step()"));
  CHECK_THAT(error_of([] { nn::check_method("pre", std::vector<std::uint32_t>()); }),
             contains("expected at least one training step"));
}

TEST_CASE("check_method() compares evaluation in two random scopes, also for gates that draw random numbers") {
  CHECK_THAT(
      detail_of_only(method_of<DrawingAtStep>(), "steps", false),
      contains("after step 10, evaluation in a RandomScope of step 10 differs from evaluation in one of step 0") &&
          contains("GateContext::training_step()"));
  CHECK_THAT(detail_of_only(method_of<Drawing>(), "steps", true),
             contains("evaluation does not depend on the RandomScope") && contains("at steps 0, 10, 1000"));
}

TEST_CASE("check_method() finds gates that work only in blocks of two junctions") {
  CHECK_THAT(detail_of_only(two_gates(), "junctions", false),
             contains("3 blocks of 1 junction (mlp) cannot be built: [block] expected method \"under_test\" to build a "
                      "gate for each of 1 branches, got 2") &&
                 contains("gate_per_junction"));
  CHECK_THAT(detail_of_only(pairs(), "junctions", false),
             contains("3 blocks of 1 junction (mlp): the output does not depend on blocks.0.gate1.b, ") &&
                 contains("do not assume 2 junctions a block"));
  CHECK_THAT(detail_of_only(method_of<ReadsSecondBranch>(), "junctions", false),
             contains("3 blocks of 1 junction (mlp) cannot be built: "));
  CHECK_THAT(detail_of_only(method_of<InfiniteAtOneJunction>(), "junctions", false),
             contains("expected finite values, got inf or NaN at step 0"));
  CHECK_THAT(detail_of_only(method_of<WithoutThirdBranch>(), "junctions", false),
             contains("2 blocks of 3 junctions (mlp, attn, mlp2): the output does not depend on ") &&
                 contains("blocks.0.mlp2.fc1.weight"));
}

TEST_CASE("check_method() accepts a method that refuses blocks with require(), but not with another error") {
  CHECK_THAT(detail_of_only(only_two(true), "junctions", true),
             contains("2 blocks of 3 junctions (mlp, attn, mlp2): not applicable, [under_test] expected blocks of two "
                      "junctions, got 3"));
  CHECK_THAT(detail_of_only(only_two(false), "junctions", false),
             contains("cannot be built: [under_test] expected blocks of two junctions, got 1") &&
                 contains("GateContext::require()"));
  // The rule "learning" reports a mistake that a transformer block shows too.
  CHECK_THAT(detail_of(method_of<Idle>(), "junctions"), contains("not checked"));
}

TEST_CASE("check_method() says what to do and reports one mistake once") {
  CHECK_THAT(detail_of(method_of<ForgottenChild>(), "registered"),
             contains("expected initialised parameters, got weight") && contains("nn::Child"));
  CHECK_THAT(detail_of(method_of<PastParameter>(), "registered"), contains("a tensor [1]") && contains("parameter()"));
  CHECK_THAT(detail_of(method_of<Decaying>(), "roles"),
             contains("register it with Role::gate, or set its decay_factor to 0"));
  CHECK_THAT(detail_of(method_of<IgnoredRowScale>(), "stochastic depth"), contains("row_scale"));
  CHECK_THAT(detail_of(method_of<Sound>(), "stochastic depth"), contains("a dropped sample equals its skip"));
  // A long list has ten names and the number of the other names.
  const std::string still = detail_of(method_of<ManyIdle>(), "learning");
  CHECK_THAT(still, contains("5 steps do not move blocks.0.gate1.i1, ") && contains(" and 18 more"));
  CHECK(std::ranges::count(still, ',') == 9);
  CHECK_THAT(detail_of(method_of<OwnWeights>(), "stochastic depth"),
             contains("a dropped sample differs from its skip by") && contains("combine_scaled"));
  CHECK_THAT(detail_of("admin", "stochastic depth"), contains("a dropped sample differs from its skip by"));

  const nn::MethodReport report = nn::check_method(method_of<OneToken>());
  INFO(report.text());
  CHECK(std::ranges::count(report.rules, false, &nn::RuleResult::passed) == 1);
  CHECK_THAT(report.text(), contains("expected combine to return the shape of the stream") &&
                                contains("(17 later rules fail with the same error"));
}

TEST_CASE("unchanged_in_bf16() gives the share of a stream that bf16 would not change") {
  CHECK(nn::rules::unchanged_in_bf16({1, 1, 1, 1}, {1e-6, 1e-3, 0.01, 0}) ==
        0.5);  // the spacing of bf16 numbers at 1 is 1/128; half of this spacing is lost to rounding
  CHECK(nn::rules::unchanged_in_bf16({1, -2}, {1, 1}) == 0);
  CHECK_THAT(detail_of("layerscale", "bf16"), contains("bf16 would lose 100 %"));
  CHECK_THAT(detail_of("rezero", "bf16"), contains("add nothing"));
}

TEST_CASE("a gate of 0 with a branch of 0 is rejected at construction, and only such a gate") {
  struct OpenGate : nn::Gate {
    void init_branch(nn::Branch& branch) override { branch.last().scale_init(0); }
  };
  struct Multiplying : OpenGate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip * (1 + branch); }
  };
  struct Tiny : OpenGate {  // the added term is lost to rounding in a stream of ones, but the branch gets a gradient
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + 1e-12 * branch; }
  };
  struct Normalising : OpenGate {
    Tensor combine(const Tensor& skip, const Tensor& branch) const override {
      return skip + layer_norm(branch, ones({branch.dim(-1)}), zeros({branch.dim(-1)}), 1e-6);
    }
  };
  struct WithLayer : OpenGate {  // the layer has no values before initialize()
    explicit WithLayer(const nn::GateContext& c) : mix{this, "mix", {.in = c.dim, .out = c.dim}} {}
    Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + mix(skip) * branch; }
    nn::Child<nn::Linear> mix;
  };
  const auto build = [](const nn::MethodChoice& gate) {
    nn::Stack({.dim = 8, .depth = 1, .method = gate, .junctions = nn::transformer_block({.heads = 2}, {.hidden = 32})});
  };
  CHECK_THAT(error_of([&] { build(method_of<Dead>()); }),
             contains("(Block.attn.proj)") && contains("neither would ever get a gradient"));
  for (const nn::Method& open :
       {method_of<Multiplying>(), method_of<Tiny>(), method_of<Normalising>(), method_of<WithLayer>()})
    CHECK_NOTHROW(build(open));
}
