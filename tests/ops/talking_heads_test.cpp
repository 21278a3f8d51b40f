// Attention with mixed heads: agreement with attention(), the effect of its biases, errors.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct TalkingInputs {
  Tensor q, k, v, weight, bias;  // with this weight and bias, mixing changes nothing

  TalkingInputs(std::int64_t B, std::int64_t H, std::int64_t N, std::int64_t M, std::int64_t E, Defaults where)
      : q(variable(random_normal({B, H, N, E}, 1, "q", where))),
        k(variable(random_normal({B, H, M, E}, 1, "k", where))),
        v(variable(random_normal({B, H, M, E}, 1, "v", where))),
        bias(zeros({H}, where)) {
    std::vector<double> identity(static_cast<std::size_t>(H * H));
    for (std::int64_t i = 0; i < H; ++i) identity[static_cast<std::size_t>(i * (H + 1))] = 1;
    weight = tensor(identity, {H, H}, where);
  }
};

// Query 1 has no key, and query 0 has all keys except one.
Tensor keep_mask(std::int64_t N, std::int64_t M, Device device) {
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(N * M), 1);
  keep[0] = 0;
  for (std::int64_t j = 0; j < M; ++j) keep[static_cast<std::size_t>(M + j)] = 0;
  return Tensor(array_from(keep, {N, M}, device));
}

}  // namespace

TEST_CASE("talking heads with identity mixing equal attention under every policy for empty rows") {
  const RandomScope random({.seed = 5, .step = 9, .first_sample = 3});
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const EmptyRow empty : {EmptyRow::keep_all, EmptyRow::zero, EmptyRow::paper}) {
      const TalkingInputs in(2, 3, 5, 9, 4, where);
      const Tensor mask = keep_mask(5, 9, where.device);
      for (const AttentionMasking& o :
           {AttentionMasking{}, AttentionMasking{.scale = 0.3}, AttentionMasking{.drop_key = 0.8, .empty = empty},
            AttentionMasking{.dropout = 0.4}, AttentionMasking{.empty = empty, .keep = mask},
            AttentionMasking{.drop_key = 0.5, .dropout = 0.4, .empty = empty, .keep = mask}}) {
        const Tensor plain = attention(in.q, in.k, in.v, o),
                     talking = attention_talking(in.q, in.k, in.v, in.weight, in.bias, in.weight, in.bias, o);
        INFO("drop_key " << o.drop_key << ", dropout " << o.dropout << ", policy " << static_cast<int>(empty));
        const double tolerance = where.dtype == DType::f64 ? 1e-13 : 3e-6;
        CHECK(relative_error(talking, plain) < tolerance);
        const Tensor cotangent = random_normal(plain.shape(), 2, "cotangent", where);
        const Tensors expected = grad(plain, {in.q, in.k, in.v}, {.cotangent = cotangent}),
                      got = grad(talking, {in.q, in.k, in.v}, {.cotangent = cotangent});
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(relative_error(got[i], expected[i]) < tolerance);
      }
    }
}

TEST_CASE("the bias before the softmax cancels and the bias after it adds to every key") {
  const TalkingInputs in(2, 3, 5, 7, 4, reference_f64);
  const Tensor pre = variable(random_normal({3, 3}, 1, "pre", reference_f64)),
               post = variable(random_normal({3, 3}, 1, "post", reference_f64)),
               pre_bias = variable(random_normal({3}, 1, "pre_bias", reference_f64)),
               post_bias = variable(random_normal({3}, 1, "post_bias", reference_f64));
  const auto run = [&](const Tensor& p, const Tensor& r) {
    return attention_talking(in.q, in.k, in.v, pre, p, post, r, {.keep = keep_mask(5, 7, Device::reference)});
  };
  const Tensor y = run(pre_bias, post_bias);
  CHECK(relative_error(run(in.bias, post_bias), y) < 1e-13);
  // A bias r_h adds r_h sum_m v[h, m] to every query of head h.
  const Tensor added = reshape(post_bias, {3, 1, 1}) * sum(in.v, {2}, true);
  CHECK(relative_error(run(pre_bias, in.bias) + added, y) < 1e-13);

  const Tensors gradients =
      grad(y, {pre, pre_bias, post_bias}, {.cotangent = random_normal(y.shape(), 2, "cotangent", reference_f64)});
  const auto largest = [](const Tensor& g) { return relative_error(g, zeros_like(g)); };
  CHECK(largest(gradients[0]) > 0.1);
  CHECK(largest(gradients[1]) < 1e-13);
  CHECK(largest(gradients[2]) > 0.1);
}

TEST_CASE("talking heads drop keys after the first mixing and probabilities after the second") {
  const RandomScope random({.seed = 5, .step = 9});
  const TalkingInputs in(2, 3, 5, 9, 4, reference_f64);
  const Tensor nothing = zeros({3, 3}, reference_f64), one = ones({3}, reference_f64);
  // Scores that are mixed to 0 are like scores of 0 in attention(): only the mask decides the probabilities.
  const AttentionMasking drop_key{.drop_key = 0.5};
  CHECK(relative_error(attention_talking(in.q, in.k, in.v, nothing, one, in.weight, in.bias, drop_key),
                       attention(in.q * 0, in.k, in.v, drop_key)) < 1e-13);
  // Mixed probabilities that are all 1 are dropped afterwards: the output counts the survivors of
  // 9 keys, each multiplied by 2.
  const Tensor counts = attention_talking(in.q, in.k, in.v * 0 + 1, in.weight, in.bias, nothing, one, {.dropout = 0.5});
  double total = 0;
  for (double count : counts.values()) {
    CHECK(count / 2 == std::round(count / 2));
    total += count / static_cast<double>(counts.numel());
  }
  CHECK(total == Approx(9).margin(1.5));
  CHECK(relative_error(max(counts), full({}, 9, reference_f64)) > 0.1);
}

TEST_CASE("talking heads keep no masks for the backward pass") {
  const RandomScope random({.seed = 5, .step = 9});
  const TalkingInputs in(4, 2, 32, 32, 4, cpu_f32);
  const auto held = [&](const AttentionMasking& o) {
    const std::size_t before = memory_stats().in_use;
    const Tensor y = attention_talking(in.q, in.k, in.v, in.weight, in.bias, in.weight, in.bias, o);
    return memory_stats().in_use - before;
  };
  const std::size_t plain = held({});
  CHECK(plain > 0);
  CHECK(held({.drop_key = 0.3}) == plain);
  CHECK(held({.dropout = 0.3}) == plain);
  CHECK(held({.drop_key = 0.3, .dropout = 0.3, .empty = EmptyRow::paper, .causal = true}) == plain);
}

TEST_CASE("mix_heads is the weighted sum over heads") {
  const Tensor x = tensor({1, 2, 3, 4}, {1, 2, 1, 2}), weight = tensor({10, 1, 0, 2}, {2, 2}),
               bias = tensor({0.5, -1}, {2});
  CHECK(mix_heads(x, weight, bias).values() == std::vector<double>{13.5, 24.5, 5, 7});
}

TEST_CASE("error messages of talking heads name the expected shapes") {
  const TalkingInputs in(1, 2, 3, 3, 4, cpu_f32);
  CHECK_THAT(error_of([&] {
               mix_heads(in.q, zeros({3, 3}), in.bias);
             }),
             contains("[mix_heads] expected weight [2, 2] and bias [2] for x [1, 2, 3, 4], got [3, 3] and [2]"));
  CHECK_THAT(error_of([&] { mix_heads(in.bias, in.weight, in.bias); }),
             contains("[mix_heads] expected x [B, H, N, M], got [2]"));
  CHECK_THAT(error_of([&] { attention_talking(in.q, in.k, in.bias, in.weight, in.bias, in.weight, in.bias); }),
             contains("[attention_talking] expected q [B, H, N, E] and k, v [B, H, M, E]"));
  CHECK_THAT(
      error_of([&] { attention_talking(in.q, in.k, in.v, in.weight, in.bias, in.weight, in.bias, {.dropout = 1}); }),
      contains("[attention_talking] expected a dropout probability in [0, 1), got 1"));
  CHECK_THAT(
      error_of([&] { attention_talking(in.q, in.k, in.v, in.weight, in.bias, in.weight, in.bias, {.scale = -1}); }),
      contains("[attention_talking] expected a finite scale of at least 0 for the scores, got -1"));
}
