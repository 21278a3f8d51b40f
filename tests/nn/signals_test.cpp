// Tests that signals that arrive during training change no result, although in some kernels of oneDNN the stack pointer
// points into the heap (backends/cpu/signals.h).
#include "core/backend.h"
#include "core/precision.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/signal_storm.h"

using namespace plumb;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int divisor = 25;
#else
constexpr int divisor = 1;
#endif

using Bits = std::vector<std::vector<double>>;

Bits bits_of(const nn::Module& model) {
  Bits all;
  for (const nn::Parameter& p : model.parameters()) all.push_back(p.value.values());
  return all;
}

Bits trained_vit(std::int64_t width, Precision products, int steps) {
  const PrecisionScope scope(products);
  nn::ViT model(
      {.image = 32, .patch = 4, .dim = width, .depth = 2, .heads = width / 64, .method = "layerscale", .seed = 1});
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor images = random_normal({16, 3, 32, 32}, 0, "images"),
               labels = integers(std::vector<std::int64_t>(16, 3), {16});
  for (int step = 0; step < steps; ++step) optimizer.step(backward(cross_entropy(model(images), labels)));
  return bits_of(model);
}

// Convolutions, and a product whose gradients use oneDNN's kernels without packing.
Bits trained_convolution(int steps) {
  Tensor w1 = variable(random_normal({64, 3, 3, 3}, 1, "w1")), w2 = variable(random_normal({64, 64, 3, 3}, 1, "w2")),
         w3 = variable(random_normal({4096, 10}, 1, "w3"));
  const Tensor x = random_normal({16, 3, 16, 16}, 0, "x");
  Bits all;
  for (int step = 0; step < steps; ++step) {
    const Tensor h =
        conv2d(relu(conv2d(x, w1, {}, {.stride = 1, .padding = 1})) * 0.1, w2, {}, {.stride = 2, .padding = 1});
    const Tensor loss = mean(matmul(reshape(relu(h), {16, 4096}), w3) * 1e-2);
    for (const Tensor& g : grad(loss, Tensors{w1, w2, w3})) all.push_back(g.values());
  }
  return all;
}

template <class F>
void check_calm(int steps, F&& train) {
  train(1);  // starts the threads
  const Bits calm = train(steps);
  const test::SignalStorm storm;
  const Bits disturbed = train(steps);
  CHECK(disturbed == calm);
  CHECK(test::SignalStorm::taken() > steps);
}

}  // namespace

TEST_CASE("two thousand signals a second change no bit of a training in f32", "[long]") {
  set_strict_determinism(true);
  check_calm(400 / divisor, [](int steps) { return trained_vit(64, Precision::f32, steps); });
  check_calm(100 / divisor, [](int steps) { return trained_vit(192, Precision::f32, steps); });
}

TEST_CASE("two thousand signals a second change no bit of a training in bf16", "[long]") {
  set_strict_determinism(true);
  check_calm(50 / divisor, [](int steps) { return trained_vit(192, Precision::bf16, steps); });
}

TEST_CASE("two thousand signals a second change no bit of convolutions", "[long]") {
  check_calm(100 / divisor, [](int steps) { return trained_convolution(steps); });
}
