// Blocks with other lists of junctions than attention and MLP.
#include <algorithm>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

constexpr std::int64_t stack_dim = 8;

nn::StackOptions decoder(const nn::MethodChoice& gate) {
  return {.dim = stack_dim,
          .depth = 2,
          .method = gate,
          .junctions = {nn::self_attention({.heads = 2}), nn::cross_attention({.heads = 2}), nn::mlp({.hidden = 12})},
          .final_norm = true};
}

Tensor queries() { return random_normal({2, 3, stack_dim}, 0, "queries"); }

}  // namespace

TEST_CASE("parameters, places and factors follow the list of junctions") {
  nn::Stack stack(decoder("rezero_separate"));
  std::vector<std::string> names;
  for (const nn::Parameter& p : stack.parameters())
    if (p.name.starts_with("blocks.1.")) names.push_back(p.name.substr(9));
  for (const char* name : {"attn.qkv.weight", "cross.qkv.weight", "mlp.fc1.weight", "gate1.alpha", "gate3.alpha"})
    CHECK(std::ranges::find(names, name) != names.end());
  const std::vector<nn::Junction*> junctions = stack.junctions();
  REQUIRE(junctions.size() == 6);
  for (std::int64_t i = 0; i < 6; ++i) {
    const nn::JunctionPlace& place = junctions[static_cast<std::size_t>(i)]->place();
    CHECK(place.index() == i);
    CHECK(place.count() == 6);
    CHECK(place.block == i / 3);
  }
  CHECK(nn::Stack(decoder("post")).parameters().front().name == "blocks.0.norm1.weight");
  // DeepNorm's alpha is L^(1/4) for L branches: 6 here, and not 2N = 4.
  CHECK(nn::deepnorm_alpha(6) == Approx(std::pow(6, 0.25)));
  nn::Stack deep(decoder("deepnorm"));
  const auto& gate = deep.junctions()[2]->gate();
  CHECK(gate.combine(ones({1, 1, stack_dim}), zeros({1, 1, stack_dim})).values()[0] == Approx(std::pow(6, 0.25)));
}

TEST_CASE("a block names its branches and refuses other names, empty lists and a missing memory") {
  nn::Stack stack(decoder("pre"));
  nn::initialize(stack, 1);
  nn::Block& block = stack.blocks()[0];
  CHECK(block.branch("cross").kind() == "cross");
  CHECK_THAT(error_of([&] { block.branch("conv"); }),
             contains("[block] expected one of the branches attn, cross, mlp, got \"conv\""));
  CHECK_THAT(error_of([&] { (void)stack(queries()); }),
             contains("expected a second input (StackInputs::memory) for this branch"));
  CHECK_THAT(error_of([] { nn::Stack({.dim = stack_dim, .depth = 1, .junctions = {}}); }),
             contains("[block] expected at least one junction, got none"));
  CHECK_THAT(error_of([] {
               nn::Stack({.dim = stack_dim, .depth = 1, .junctions = {nn::mlp({.hidden = 4}), nn::mlp({.hidden = 4})}});
             }),
             contains("got \"mlp\", which is taken"));
  CHECK_NOTHROW(nn::Stack(
      {.dim = stack_dim, .depth = 1, .junctions = {nn::mlp({.hidden = 4}), nn::mlp({.hidden = 4}).named("mlp2")}}));
}

TEST_CASE("a branch finds its layers with weights and its shape by itself") {
  struct Own : nn::Branch {
    struct Middle : nn::Module {
      Middle() : Module("Middle") {}
      nn::Child<nn::Linear> layer{this, "layer", {.in = 5, .out = 6}};
    };
    explicit Own(const nn::JunctionPlace& place)
        : Branch("Own", {.activation = true}), first(this, "first", {.in = place.dim, .out = 5}) {}
    Tensor forward(nn::BranchCall& call) const override {
      return call.leave(last, middle.layer(norm(relu(call.enter(first)))));
    }
    nn::Child<nn::Linear> first;
    nn::Child<nn::LayerNorm> norm{this, "norm", 5};
    nn::Child<Middle> middle{this, "middle"};
    nn::Child<nn::Linear> last{this, "last", {.in = 6, .out = stack_dim}};
  };
  Own own({.dim = stack_dim});
  CHECK(own.weight_layers() == std::vector<nn::WeightLayer*>{&own.first, &own.middle.layer, &own.last});
  CHECK((&own.first == &static_cast<nn::Branch&>(own).first() && &own.last == &static_cast<nn::Branch&>(own).last()));
  const nn::BranchShape shape = own.shape();
  CHECK((shape.hidden == 6 && shape.weight_layers == 3 && shape.heads == 0 && shape.activation && shape.kind.empty()));
  own.scale_value_path(0.5);
  for (nn::WeightLayer* layer : own.weight_layers())
    CHECK(layer->weight_init().description() == "truncated_normal(0.02) * 0.5");
  nn::Attention attention({.dim = 6, .heads = 2});
  CHECK((attention.shape().hidden == 6 && attention.shape().weight_layers == 4 && attention.shape().heads == 2));
  CHECK(attention.weight_layers().size() == 2);
}

TEST_CASE("a stack with inputs is one call, which the hooks of the stack see") {
  nn::Stack stack(decoder("pre"));
  nn::initialize(stack, 1);
  const nn::StackInputs inputs{.memory = {.x = random_normal({2, 5, stack_dim}, 0, "memory")}};
  const std::vector<double> y = stack.close(stack.run(queries(), inputs)).values();
  CHECK(stack(queries(), inputs).values() == y);
  const Handle hook = stack.on_forward([](const nn::Layer&, const Tensor&, const Tensor& output) { return -output; });
  CHECK(stack(queries(), inputs).values() == (-tensor(y, {2, 3, stack_dim})).values());
  CHECK(stack.close(stack.run(queries(), inputs)).values() == y);
}

TEST_CASE("stochastic depth draws separately for each junction of a block") {
  nn::Stack stack({.dim = stack_dim,
                   .depth = 1,
                   .method = "pre",
                   .junctions = {nn::mlp({.hidden = 4}), nn::mlp({.hidden = 4}).named("second"),
                                 nn::mlp({.hidden = 4}).named("third")},
                   .drop_path = {.rate = 0.5}});
  nn::initialize(stack, 1);
  std::vector<std::vector<bool>> kept;
  const Handle watch = stack.blocks()[0].observe([&](const nn::JunctionPass& j) {
    std::vector<bool>& samples = kept.emplace_back();
    const std::vector<double> moved = max(abs(j.output - j.before.x), {1, 2}).values();
    for (const double m : moved) samples.push_back(m > 0);
  });
  const RandomScope random({.seed = 3, .step = 1});
  (void)stack(random_normal({64, 2, stack_dim}, 0, "x"));
  REQUIRE(kept.size() == 3);
  CHECK(kept[0] != kept[1]);
  CHECK(kept[1] != kept[2]);
  CHECK(kept[0] != kept[2]);
}

TEST_CASE("Fixup scales the initial weights of all layers of a branch but the last") {
  nn::Stack plain(decoder("pre")), fixup(decoder("fixup:zero_last=0"));
  const auto scale_of = [](nn::Stack& stack, std::size_t layer) {
    return stack.junctions()[1]->branch().weight_layers()[layer]->weight_init();
  };
  // The cross-attention has the layers qkv, which are three matrices of four, and proj, and the stack six branches.
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const nn::Init expected =
        layer < 1 ? scale_of(plain, layer).scaled(nn::fixup_factor(6, 4)) : scale_of(plain, layer);
    const Array got = empty_like(zeros({layer < 1 ? 24 : 8, 8}).array()), want = empty_like(got);
    scale_of(fixup, layer).fill(got, 1, "w"), expected.fill(want, 1, "w");
    CHECK(to_vector(got) == to_vector(want));
  }
}
