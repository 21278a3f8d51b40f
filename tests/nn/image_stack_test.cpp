// Stacks of convolutional branches: the channels of the stream are the second axis.
#include <algorithm>

#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::StackOptions residual_cnn(const nn::MethodChoice& gate, std::int64_t depth = 2) {
  return {.dim = 6,
          .depth = depth,
          .method = gate,
          .junctions = {nn::conv_branch()},
          .layout = nn::Layout::images,
          .final_norm = true};
}

Tensor stream_images() { return random_normal({3, 6, 5, 4}, 0, "images"); }

bool needs_tokens(const std::string& gate) {
  static const std::vector<std::string> methods{"dyt", "hyper_connections", "normformer", "value_residual"};
  return std::ranges::find(methods, gate) != methods.end();
}

}  // namespace

TEST_CASE("every method that has a form for images trains a residual convolutional network") {
  for (const std::string& gate : nn::method_names()) {
    if (needs_tokens(gate) || gate == "b2t") continue;  // b2t needs two branches in a block
    INFO(gate);
    const DefaultsScope f64(reference_f64);
    nn::Stack stack(residual_cnn(gate, gate == "sub_ln" ? 2 : 1));  // sub_ln needs two branches
    nn::initialize(stack, 1);
    shake_trained(stack);
    for (const nn::Parameter& p : stack.parameters())  // keeps the ReLUs away from 0, where no derivative exists
      if (p.name.ends_with("conv1.bias")) copy_into(full(p.value.shape(), 30).array(), p.value.array());
    Tensors variables = stack.trainable();
    const Tensor x = variable(stream_images());
    variables.push_back(x);
    stack.eval();  // so that batch norm uses the same statistics in each pass
    CHECK_NOTHROW(check_gradients([&] { return stack(x); }, variables, {.elements = 1, .directions = 1}));
    stack.train();
    const Tensors gradients = grad(sum(stack(x) * random_normal(x.shape(), 2, "cotangent")), variables);
    for (const Tensor& g : gradients) CHECK(all_finite(g.array()));
  }
}

TEST_CASE("a method without a form for images says so") {
  for (const std::string& gate : nn::method_names())
    if (needs_tokens(gate))
      CHECK_THAT(error_of([&] { nn::Stack{residual_cnn(gate)}; }), contains("has no form for images"));
  CHECK_THAT(error_of([] { nn::Stack{residual_cnn("b2t")}; }), contains("blocks of at least two branches, got 1"));
  CHECK_THAT(error_of([] { nn::Stack{residual_cnn("sub_ln", 1)}; }), contains("a stack of at least two branches"));
}

TEST_CASE("LayerScale on images multiplies each channel of the branch and equals the composed form") {
  for (const Device device : {Device::reference, Device::cpu}) {
    const DefaultsScope scope({device == Device::cpu ? DType::f32 : DType::f64, device});
    const double limit = device == Device::cpu ? 1e-5 : 1e-12;
    nn::Stack stack(residual_cnn(nn::methods::layerscale(0.5), 1));
    nn::initialize(stack, 1);
    shake_trained(stack);
    const nn::Parameter gamma = [&] {
      for (const nn::Parameter& p : stack.parameters())
        if (p.name == "blocks.0.gate1.gamma") return p;
      throw std::runtime_error("no gamma");
    }();
    CHECK(gamma.value.shape() == Shape{6});
    CHECK(gamma.decay_factor() == 0);
    const Tensor x = variable(stream_images());
    Tensor composed, fused;
    const Handle watch = stack.blocks()[0].observe([&](const nn::JunctionPass& j) {
      fused = j.joined;
      composed = j.before.x + reshape(gamma.value, {1, 6, 1, 1}) * j.branch_value;
    });
    (void)stack(x);
    CHECK(relative_error(fused, composed) < limit);
    // The gradients of gamma by the fused sum and by the composed sum, on the same branch.
    const Tensor branch = random_normal(x.shape(), 3, "branch"), dy = random_normal(x.shape(), 4, "dy");
    const nn::LayerScale gate(6, 0.5, nn::Layout::images);
    const Tensor by_gate = grad(sum(gate.combine(x, branch) * dy), gate.gamma());
    const Tensor by_hand = grad(sum((x + reshape(gate.gamma(), {1, 6, 1, 1}) * branch) * dy), gate.gamma());
    CHECK(relative_error(by_gate, by_hand) < limit);
    CHECK(relative_error(gate(branch), reshape(gate.gamma(), {1, 6, 1, 1}) * branch) < limit);
    CHECK(gate.flop_count(20) == 120);
    CHECK_THAT(error_of([&] {
                 (void)gate(ones({2, 5, 3, 3}));
               }),
               contains("[layer_scale] expected input [B, 6, H, W], got [2, 5, 3, 3]"));
  }
}

TEST_CASE("stochastic depth drops whole images of a convolutional branch") {
  nn::StackOptions o = residual_cnn("layerscale", 1);
  o.drop_path = {.rate = 0.5};
  o.final_norm = false;
  nn::Stack stack(o);
  nn::initialize(stack, 1);
  const RandomScope random({.seed = 3, .step = 1});
  const Tensor x = random_normal({64, 6, 2, 2}, 0, "x"), moved = stack(x) - x;
  int dropped = 0;
  for (std::int64_t b = 0; b < 64; ++b) dropped += max(abs(slice(moved, 0, b, b + 1))).item() == 0;
  CHECK(dropped > 16);
  CHECK(dropped < 48);
}

TEST_CASE("a convolutional branch keeps the size of the image") {
  CHECK_THAT(error_of([] { nn::conv_branch(2); }), contains("expected an odd kernel"));
}

TEST_CASE("an observer that runs the gate again does not move the statistics of batch norm") {
  const auto statistics = [](bool observed) {
    nn::Stack stack(residual_cnn("peri_ln"));
    nn::initialize(stack, 1);
    std::vector<Handle> watch;
    if (observed)
      for (auto& block : stack.blocks())
        watch.push_back(
            block.observe([](const nn::JunctionPass& j) { (void)j.gate.added(j.before.x, j.branch_value); }));
    (void)stack(stream_images());
    std::vector<std::vector<double>> values;
    for (const nn::Parameter& p : stack.parameters())
      if (p.role == nn::Role::statistic) values.push_back(p.value.values());
    return values;
  };
  CHECK(statistics(false).size() > 2);
  CHECK(statistics(true) == statistics(false));
}
