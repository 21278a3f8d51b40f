// The Jacobian at initialisation of the transformer encoders in the notebook of ReZero's authors
// ("ReZero-Deep_Fast_Transformer"), written in plain ops: width 16, 4 tokens, 4 heads, 64 hidden units in the
// feed-forward layer, ReLU.
#include <cmath>

#include "core/random.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/jacobian_draws.h"

using namespace plumb;
using namespace plumb::test;

namespace {

enum class Encoder { post, pre, rezero };

Tensor uniform_tensor(const Shape& shape, double bound, std::uint64_t seed, const std::string& name) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = bound * (2 * uniform(element_draw(random_key(seed, name), 0, Purpose::init, i / 4)[i % 4]) - 1);
  return tensor(values, shape);
}

// Every weight is drawn from Glorot's uniform distribution, with q, k and v as one matrix. The biases of attention are
// 0; those of the feed-forward layers have PyTorch's default and are drawn once for all blocks, because the blocks are
// copies of one block. There is no final norm. ReZero's alpha is 0.1 in all blocks.
std::function<Tensor(const Tensor&)> encoder(Encoder kind, std::int64_t blocks, std::uint64_t seed) {
  constexpr std::int64_t D = 16, heads = 4, hidden = 64;
  const auto xavier = [seed](std::int64_t out, std::int64_t in, const std::string& name) {
    return uniform_tensor({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)), seed, name);
  };
  const Tensor bias1 = uniform_tensor({hidden}, 1 / std::sqrt(16.0), seed, "bias1"),
               bias2 = uniform_tensor({D}, 1 / std::sqrt(64.0), seed, "bias2");
  struct Block {
    Tensor qkv, out, fc1, fc2;
  };
  std::vector<Block> weights;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const auto name = [i](const char* layer) { return fmt::format("{}.{}", i, layer); };
    weights.push_back({xavier(3 * D, D, name("qkv")), xavier(D, D, name("out")), xavier(hidden, D, name("fc1")),
                       xavier(D, hidden, name("fc2"))});
  }
  return [=](const Tensor& input) {
    const auto norm = [](const Tensor& t) { return layer_norm(t, ones({D}), zeros({D}), 1e-5); };
    const auto join = [&](const Tensor& t, const std::function<Tensor(const Tensor&)>& f) {
      return kind == Encoder::post ? norm(t + f(t)) : kind == Encoder::pre ? t + f(norm(t)) : t + f(t) * 0.1;
    };
    Tensor x = input;
    for (const Block& b : weights) {
      x = join(x, [&](const Tensor& t) { return linear(attention_qkv(linear(t, b.qkv), heads), b.out); });
      x = join(x, [&](const Tensor& t) { return linear(relu(linear(t, b.fc1, bias1)), b.fc2, bias2); });
    }
    return x;
  };
}

JacobianDraws drawn(Encoder kind, std::int64_t blocks) {
  return jacobian_draws([=](std::uint64_t draw) { return encoder(kind, blocks, draw); }, {1, 4, 16});
}

}  // namespace

TEST_CASE("the Jacobians of fresh encoders agree with those that ReZero's authors print", "[long]") {
  // Published values (post, pre, rezero): 12 blocks 0.810, 10.242, 1.059; 128 blocks 0.000, 66.281, 2.142. Single draws
  // of rezero have a standard deviation of 0.03 and 0.28. Single draws of post and pre vary by more than their mean, so
  // the test only checks the size of the median.
  CHECK(drawn(Encoder::rezero, 12).mean == Approx(1.06).margin(0.03));
  CHECK(drawn(Encoder::rezero, 128).mean == Approx(2.15).margin(0.35));
  const double post12 = drawn(Encoder::post, 12).median, pre12 = drawn(Encoder::pre, 12).median,
               post128 = drawn(Encoder::post, 128).median, pre128 = drawn(Encoder::pre, 128).median;
  CAPTURE(post12, pre12, post128, pre128);
  CHECK((post12 > 0.1 && post12 < 1.5));
  CHECK((pre12 > 4 && pre12 < 16));
  CHECK(post128 < 1e-3);
  CHECK((pre128 > 15 && pre128 < 120));
}
