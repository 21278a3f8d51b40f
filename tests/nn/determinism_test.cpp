// Tests that training steps give the same bits on the same number of threads and, under strict determinism, on any
// number of threads.
#include <array>
#include <cstring>
#include <functional>

#include "core/backend.h"
#include "core/precision.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;

namespace {

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(0); }
};
struct Strict {
  explicit Strict(bool on) { set_strict_determinism(on); }
  ~Strict() { set_strict_determinism(false); }
};

// Returns the weights after two steps, in a model whose products are large enough to be split over threads.
std::vector<Array> trained_weights(Precision products) {
  const PrecisionScope scope(products);
  nn::ViT model({.image = 32,
                 .patch = 8,
                 .classes = 10,
                 .dim = 96,
                 .depth = 2,
                 .heads = 3,
                 .method = "layerscale",
                 .drop_key = {.rate = 0.1},
                 .seed = 3});
  nn::AdamW optimizer(model.parameters(), {.lr = 1e-3, .clip_norm = 1});
  const Tensor images = random_normal({32, 3, 32, 32}, 0, "images");
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 32; ++i) labels.push_back(i * 7 % 10);
  for (std::uint32_t step = 0; step < 2; ++step) {
    const RandomScope random({.seed = 3, .step = step});
    optimizer.step(backward(cross_entropy(model(images), integers(labels, {32}))));
  }
  std::vector<Array> weights;
  for (const nn::Parameter& p : model.parameters()) weights.push_back(p.value.array());
  return weights;
}

bool same_arrays(const std::vector<Array>& a, const std::vector<Array>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].bytes(), b[i].bytes(), static_cast<std::size_t>(a[i].numel()) * sizeof(float)) != 0)
      return false;
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("a repeated step on the same number of threads gives the same bits") {
  for (Precision products : {Precision::f32, Precision::bf16}) {
    const Threads threads(2);
    CHECK(same_arrays(trained_weights(products), trained_weights(products)));
  }
}

TEST_CASE("strict determinism gives the same bits on any number of threads") {
  const Strict strict(true);
  for (Precision products : {Precision::f32, Precision::bf16}) {
    std::vector<Array> first;
    for (int n : {1, 2, 3, 5, 8}) {
      const Threads threads(n);
      std::vector<Array> now = trained_weights(products);
      INFO(enum_name(products) << " on " << n << " threads");
      if (!first.empty()) CHECK(same_arrays(first, now));
      first = std::move(now);
    }
  }
}

// Without strict determinism, the bits of these shapes depend on the number of threads.
TEST_CASE("strict determinism covers weight gradients and products of matmul()") {
  const Strict strict(true);
  const auto on_any_number = [](const std::function<std::vector<double>()>& f) {
    std::vector<double> first;
    for (int n : {1, 2, 3, 4, 5, 7, 8, 16}) {
      const Threads threads(n);
      const std::vector<double> now = f();
      INFO(n << " threads");
      if (!first.empty()) CHECK(first == now);
      first = now;
    }
  };
  for (auto [R, N, K] :
       std::vector<std::array<std::int64_t, 3>>{{2500, 65, 17}, {1000, 65, 65}, {777, 129, 129}, {513, 577, 192}}) {
    const Tensor x = random_normal({R, K}, 0, "x"), w = variable(random_normal({N, K}, 0, "w")),
                 dy = random_normal({R, N}, 0, "dy");
    on_any_number([&] { return grad(linear(x, w), w, {.cotangent = dy}).values(); });
  }
  for (auto [M, K, N] : std::vector<std::array<std::int64_t, 3>>{{768, 4160, 192}, {192, 4160, 192}}) {
    const Tensor a = random_normal({K, M}, 0, "a"), b = random_normal({K, N}, 0, "b");
    on_any_number([&] { return matmul(a, b, true, false).values(); });
  }
}
