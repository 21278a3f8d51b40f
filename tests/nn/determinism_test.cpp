// Which runs give the same bits: the same number of threads, or, under strict determinism, any.
#include <cstring>

#include "core/backend.h"
#include "core/precision.h"
#include "nn/nn.h"
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

// The weights after two steps, with products large enough to be shared among threads.
std::vector<Array> trained(Precision products) {
  const PrecisionScope scope(products);
  nn::ViT model(
      {.image = 32, .patch = 8, .classes = 10, .dim = 96, .depth = 2, .heads = 3, .gate = "layerscale", .drop_key = {.rate = 0.1}, .seed = 3});
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

bool same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].bytes(), b[i].bytes(), static_cast<std::size_t>(a[i].numel()) * sizeof(float)) != 0) return false;
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("a step run again on as many threads has the same bits") {
  for (Precision products : {Precision::f32, Precision::bf16}) {
    const Threads threads(2);
    CHECK(same_bits(trained(products), trained(products)));
  }
}

TEST_CASE("strict determinism: the same bits on any number of threads") {
  const Strict strict(true);
  for (Precision products : {Precision::f32, Precision::bf16}) {
    std::vector<Array> first;
    for (int n : {1, 2, 3, 5, 8}) {
      const Threads threads(n);
      std::vector<Array> now = trained(products);
      INFO(name(products) << " on " << n << " threads");
      if (!first.empty()) CHECK(same_bits(first, now));
      first = std::move(now);
    }
  }
}

TEST_CASE("strict determinism: products of matmul() too") {
  const Strict strict(true);
  const Tensor a = random_normal({33, 4000}, 0, "a"), b = random_normal({4000, 65}, 0, "b");
  std::vector<double> first;
  for (int n : {1, 2, 4, 8, 16}) {
    const Threads threads(n);
    const std::vector<double> now = matmul(a, b).values();
    if (!first.empty()) CHECK(first == now);
    first = now;
  }
}
