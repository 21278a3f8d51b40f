// The phase of a pass is a label. The reason for which a pass is repeated decides whether layers keep state.
#include <optional>

#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// x + (1 + step) f(LN(x))
struct Stepped : nn::Gate {
  explicit Stepped(const nn::GateContext& c) : step(c.training_step()) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + static_cast<double>(1 + step()) * branch;
  }
  nn::TrainingStep step;
};

// The state that a pass of step 4 leaves behind.
struct Traces {
  double training_step = 0, running_mean = 0, running_var = 0;
  int junctions = 0, attentions = 0;
  bool operator==(const Traces&) const = default;
};

// Runs a network and a batch norm in the open phase.
Traces traces_of_a_pass() {
  nn::ViT model({.image = 8,
                 .patch = 4,
                 .channels = 1,
                 .classes = 3,
                 .dim = 8,
                 .depth = 1,
                 .heads = 2,
                 .method = nn::Method{.name = "stepped", .build = nn::gates_from<Stepped>}});
  nn::BatchNorm2d norm(1);
  nn::initialize(model, 0);
  nn::initialize(norm, 0);
  Traces traces;
  const nn::Block& block = model.stack().blocks()[0];
  const Handle junctions = model.stack().blocks()[0].observe([&](const nn::JunctionPass&) { ++traces.junctions; });
  const auto* const attention = dynamic_cast<const nn::AttentionBranch*>(&block.junctions()[0]->branch());
  REQUIRE(attention);
  const Handle attentions = attention->observe([&](const nn::AttentionPass&) { ++traces.attentions; });
  const RandomScope random({.seed = 1, .step = 4});
  const Tensor images = random_normal({8, 1, 8, 8}, 0, "images") * 3 + 5;
  model(images);
  norm(images);
  for (const nn::Parameter& p : model.parameters())
    if (p.name == "training_step") traces.training_step = p.value.item();
  traces.running_mean = norm.own("running_mean").value.item();
  traces.running_var = norm.own("running_var").value.item();
  return traces;
}

}  // namespace

TEST_CASE("a phase of the caller changes no state that layers keep, and mutes no observer") {
  const Traces plain = traces_of_a_pass();
  CHECK(plain.training_step == 4);
  CHECK(plain.running_mean > 0.4);
  CHECK(plain.junctions == 2);
  CHECK(plain.attentions == 1);
  for (const char* label : {"warm-up", "forward (checkpoint)", "observer", "backward"}) {
    CAPTURE(label);
    const PhaseScope phase(label);
    CHECK(traces_of_a_pass() == plain);
    CHECK_THAT(current_place(), contains(label));
  }
}

TEST_CASE("a repeated pass changes no state that layers keep, and calls no observer") {
  for (const Repeat why : {Repeat::checkpoint, Repeat::observer}) {
    const RepeatScope repeat(why);
    CHECK(traces_of_a_pass() == Traces{.running_var = 1});
    const PhaseScope label("forward");
    CHECK(traces_of_a_pass() == Traces{.running_var = 1});
  }
  CHECK(current_repeat() == Repeat::none);
  CHECK(current_phase() == std::string());
}
