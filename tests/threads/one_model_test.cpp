// One model that several threads use at the same time. The thread sanitizer runs this test, too (./test.sh tsan).
#include <array>
#include <latch>
#include <thread>

#include "autograd/autograd.h"
#include "core/precision.h"
#include "nn/nn.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// The bits of the loss and of all gradients of one training step.
using Bits = std::vector<std::vector<double>>;

Bits step_of(const nn::Module& model, const Tensor& loss) {
  Bits bits{loss.values()};
  for (const Tensor& g : grad(loss, model.trainable())) bits.push_back(g.values());
  return bits;
}

nn::ViT vit(const std::string& gate) {
  return nn::ViT({.image = 16,
                  .patch = 4,
                  .channels = 1,
                  .classes = 5,
                  .dim = 16,
                  .depth = 3,
                  .gate = gate,
                  .drop_key = {.rate = 0.2},
                  .attention_dropout = 0.1,
                  .drop_path = {.rate = 0.2},
                  .seed = 1});
}

// Runs `step` on two threads at the same time, three times each, and compares all results with those of one thread.
// `step` gets a seed.
void compare_threads(const std::function<Bits(std::uint64_t)>& step) {
  constexpr int repeats = 3;
  const std::array<Bits, 2> alone{step(0), step(1)};
  std::array<std::vector<Bits>, 2> together;
  std::latch start(2);
  const auto work = [&](std::size_t which) {
    start.arrive_and_wait();
    for (int i = 0; i < repeats; ++i) together[which].push_back(step(which));
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (std::size_t which = 0; which < 2; ++which)
    for (const Bits& bits : together[which]) CHECK(bits == alone[which]);
}

}  // namespace

TEST_CASE("one model trains on two threads at once with the bits of one thread") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 3, 4, 1}, {4});
  for (const char* gate : {"layerscale", "rezero", "fixup", "post", "b2t", "value_residual", "hyper_connections"})
    for (const bool checkpoints : {false, true}) {
      INFO(gate << (checkpoints ? ", checkpointed" : ""));
      nn::ViT model = vit(gate);
      model.checkpoint_blocks(checkpoints);
      compare_threads([&](std::uint64_t seed) {
        const RandomScope random({.seed = seed, .step = 3});
        return step_of(model, cross_entropy(model(images), labels));
      });
    }
}

TEST_CASE("one model trains in bf16 on two threads at once with the bits of one thread") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 3, 4, 1}, {4});
  const nn::ViT model = vit("layerscale");
  compare_threads([&](std::uint64_t seed) {
    const PrecisionScope bf16(Precision::bf16);
    const RandomScope random({.seed = seed, .step = 3});
    return step_of(model, cross_entropy(model(images), labels));
  });
}

TEST_CASE("hooks and observers of a model see the passes of each thread") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images");
  for (const char* gate : {"layerscale", "post", "residual_dual"}) {
    INFO(gate);
    nn::ViT model = vit(gate);
    std::atomic<int> junctions = 0, blocks = 0;
    std::vector<Handle> watch;
    for (const auto& block : model.blocks()) {
      watch.push_back(block->observe([&](const nn::JunctionPass&) { ++junctions; }));
      watch.push_back(block->on_forward([&](const nn::Layer&, const Tensor&, const Tensor&) {
        ++blocks;
        return Tensor();
      }));
    }
    compare_threads([&](std::uint64_t seed) {
      const RandomScope random({.seed = seed, .step = 3});
      return step_of(model, sum(model(images)));
    });
    CHECK(junctions == 8 * 6);  // two passes alone and three on each thread, each through 3 blocks of 2 junctions
    CHECK(blocks == 8 * 3);
  }
}

TEST_CASE("batch norm is trained by one thread and evaluated by several") {
  struct Net : nn::Layer {
    Net() : Layer("Net"), conv({.in = 1, .out = 4, .kernel = 3}), norm(4) {
      child("conv", conv), child("norm", norm);
      nn::initialize(*this, 1);
    }
    Tensor forward(const Tensor& x) const override { return norm(conv(x)); }
    nn::Conv2d conv;
    nn::BatchNorm2d norm;
  } model;
  const Tensor images = random_normal({4, 1, 8, 8}, 0, "images");
  std::thread([&] { CHECK_NOTHROW((void)model(images)); }).join();
  CHECK_NOTHROW((void)model(images));  // the first thread has ended
  const auto by_another = [&] {
    std::string message;
    std::thread([&] { message = error_of([&] { (void)model(images); }); }).join();
    return message;
  };
  CHECK_THAT(by_another(), contains("expected one thread to train a model with batch norm, got a second thread"));
  {
    const NoGrad no_grad;  // as in the first pass of a checkpointed block
    CHECK_NOTHROW((void)model(images));
  }
  CHECK_THAT(by_another(), contains("Give each thread its own model"));
  model.eval();
  compare_threads([&](std::uint64_t) { return step_of(model, sum(model(images))); });
}
