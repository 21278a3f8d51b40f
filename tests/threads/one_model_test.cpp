// One model that several threads use at the same time. The thread sanitizer runs this test, too (./test.sh tsan).
#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <thread>

#include "core/precision.h"
#include "plumb/plumb.h"
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

Bits bits_of(const Gradients& gradients) {
  Bits bits{{gradients.loss(), gradients.norm()}};
  for (const Gradients::Entry& e : gradients.entries()) bits.push_back(e.gradient.values());
  return bits;
}

nn::ViT vit(const std::string& gate) {
  return nn::ViT({.image = 16,
                  .patch = 4,
                  .channels = 1,
                  .classes = 5,
                  .dim = 16,
                  .depth = 3,
                  .method = gate,
                  .drop_key = {.rate = 0.2},
                  .attention_dropout = 0.1,
                  .drop_path = {.rate = 0.2},
                  .seed = 1});
}

// Runs `step` on two threads at the same time, three times each, and compares all results with those of one thread.
// Returns the results of one thread. `step` gets a seed. The two threads run first, so that they also make the first
// passes of a new model.
std::array<Bits, 2> compare_threads(const std::function<Bits(std::uint64_t)>& step) {
  constexpr int repeats = 3;
  // oneDNN makes its cache at its first product. The thread sanitizer does not see how oneDNN guards this.
  static const Tensor first = matmul(ones({2, 2}), ones({2, 2}));
  std::array<std::vector<Bits>, 2> together;
  std::latch start(2);
  const auto work = [&](std::size_t which) {
    start.arrive_and_wait();
    for (int i = 0; i < repeats; ++i) together[which].push_back(step(which));
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  const std::array<Bits, 2> alone{step(0), step(1)};
  for (std::size_t which = 0; which < 2; ++which)
    for (const Bits& bits : together[which]) CHECK(bits == alone[which]);
  return alone;
}

// Compares the gradients of `loss` as compare_threads() does: those of grad(), and those of backward(), which frees the
// graph. Each thread has one of the random states. The two states must give different gradients, so that a thread that
// gets values of the other thread is noticed.
void compare_gradients(const nn::Module& model, const std::function<Tensor()>& loss,
                       const std::array<RandomState, 2>& states = {{{.seed = 0, .step = 3}, {.seed = 1, .step = 3}}}) {
  const auto of_grad = compare_threads([&](std::uint64_t which) {
    const RandomScope random(states.at(which));
    return step_of(model, loss());
  });
  CHECK(of_grad[0] != of_grad[1]);
  const auto of_backward = compare_threads([&](std::uint64_t which) {
    const RandomScope random(states.at(which));
    return bits_of(backward(loss()));
  });
  CHECK(of_backward[0] != of_backward[1]);
}

// x + min(step / 8, 1) f(LN(x))
struct Ramp : nn::Gate {
  explicit Ramp(const nn::GateContext& c) : step(c.training_step()) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + std::min(static_cast<double>(step()) / 8, 1.0) * branch;
  }
  nn::TrainingStep step;
};

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

TEST_CASE("backward() gives each of two threads the gradients of its own pass") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 3, 4, 1}, {4});
  for (const bool checkpoints : {false, true}) {
    INFO((checkpoints ? "checkpointed" : "not checkpointed"));
    nn::ViT model = vit("layerscale");
    model.checkpoint_blocks(checkpoints);
    compare_gradients(model, [&] { return cross_entropy(model(images), labels); });
  }
}

TEST_CASE("a gate gets the training step of its own thread") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 3, 4, 1}, {4});
  for (const bool checkpoints : {false, true}) {
    INFO((checkpoints ? "checkpointed" : "not checkpointed"));
    nn::ViT model({.image = 16,
                   .patch = 4,
                   .channels = 1,
                   .classes = 5,
                   .dim = 16,
                   .depth = 2,
                   .method = nn::Method{.name = "ramp", .build = nn::gates_from<Ramp>},
                   .seed = 1});
    model.checkpoint_blocks(checkpoints);
    // The model draws no random numbers, so the two threads differ only in the training step.
    compare_gradients(model, [&] { return cross_entropy(model(images), labels); },
                      {{{.seed = 1, .step = 2}, {.seed = 1, .step = 7}}});
    const auto trained = [&](std::uint32_t step) {
      const RandomScope random({.seed = 1, .step = step});
      return model(images).values();
    };
    std::thread other([&] { (void)trained(1); });
    (void)trained(5);
    other.join();
    std::vector<double> evaluated;
    {
      const nn::EvaluationScope scope(model);
      evaluated = model(images).values();
    }
    CHECK((evaluated == trained(1) || evaluated == trained(5)));  // the step of one of the two threads
  }
}

TEST_CASE("a stack with three junctions a block and a memory trains on two threads with the bits of one thread") {
  const Tensor x = variable(random_normal({4, 3, 16}, 0, "queries")),
               memory = variable(random_normal({4, 5, 16}, 0, "memory")),
               position = random_normal({5, 16}, 0, "position"), cotangent = random_normal({4, 3, 16}, 0, "cotangent");
  const nn::StackInputs inputs{.memory = {.x = memory, .position = position}};
  for (const char* gate : {"post", "value_residual"})
    for (const bool checkpoints : {false, true}) {
      INFO(gate << (checkpoints ? ", checkpointed" : ""));
      nn::Stack stack({.dim = 16,
                       .depth = 2,
                       .method = gate,
                       .junctions = {nn::self_attention({.heads = 2, .dropout = 0.1}),
                                     nn::cross_attention({.heads = 2}), nn::mlp({.hidden = 32})},
                       .drop_path = {.rate = 0.2},
                       .final_norm = true});
      nn::initialize(stack, 1);
      stack.checkpoint_blocks(checkpoints);
      compare_gradients(stack, [&] { return sum(stack(x, inputs) * cotangent); });
    }
}

TEST_CASE("one CaiT trains on two threads at once with the bits of one thread") {
  const Tensor images = random_normal({4, 1, 16, 16}, 0, "images"), labels = integers({0, 3, 4, 1}, {4});
  for (const bool checkpoints : {false, true}) {
    INFO((checkpoints ? "checkpointed" : "not checkpointed"));
    nn::CaiT model({.image = 16,
                    .patch = 4,
                    .channels = 1,
                    .classes = 5,
                    .dim = 16,
                    .depth = 2,
                    .heads = 2,
                    .depth_token_only = 1,
                    .drop_key = {.rate = 0.2},
                    .attention_dropout = 0.1,
                    .drop_path = {.rate = 0.2},
                    .seed = 1});
    model.checkpoint_blocks(checkpoints);
    compare_gradients(model, [&] { return cross_entropy(model(images), labels); });
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
    for (auto& block : model.blocks()) {
      watch.push_back(block.observe([&](const nn::JunctionPass&) { ++junctions; }));
      watch.push_back(block.on_forward([&](const nn::Layer&, const Tensor&, const Tensor&) {
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
    Net() { nn::initialize(*this, 1); }
    Tensor forward(const Tensor& x) const override { return norm(conv(x)); }
    nn::Child<nn::Conv2d> conv{this, "conv", {.in = 1, .out = 4, .kernel = 3}};
    nn::Child<nn::BatchNorm2d> norm{this, "norm", 4};
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
