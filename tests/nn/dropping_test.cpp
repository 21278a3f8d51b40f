// Tests of DropHead and of the two forms of stochastic depth.
#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "nn/layers/attention.h"
#include "nn/layers/drop_head.h"
#include "nn/layers/drop_path.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("DropHead drops heads at its rate, rescales the others and keeps at least one") {
  const std::int64_t batch = 3000, heads = 11;
  const Tensor like = zeros({1});
  for (double rate : {0.0, 0.3, 0.97}) {
    const RandomScope random({.seed = 3, .step = 1});
    const Tensor scale = nn::drop_head_scale(batch, heads, rate, like);
    CHECK(scale.shape() == Shape{batch, 1, heads, 1});
    const std::vector<double> s = scale.values();
    double dropped = 0, expected = rate * heads;
    expected -= std::pow(rate, heads);  // if all heads of a sample would be dropped, one head is kept
    std::vector<double> kept_alone(heads);
    for (std::size_t b = 0; b < s.size(); b += heads) {
      const auto zeros = std::count(&s[b], &s[b] + heads, 0.0);
      REQUIRE(zeros < heads);
      for (std::size_t h = 0; h < heads; ++h) {
        if (s[b + h] != 0) CHECK(s[b + h] == Approx(static_cast<double>(heads) / static_cast<double>(heads - zeros)));
        if (zeros == heads - 1) kept_alone[h] += s[b + h] != 0;
      }
      dropped += static_cast<double>(zeros);
    }
    CHECK(dropped / batch == Approx(expected).margin(4 * std::sqrt(heads * 0.25 / batch)));
    if (rate > 0.9)
      for (double n : kept_alone) CHECK(n > 100);  // about 2800 samples over 11 heads, so about 255 for each head
    CHECK(nn::drop_head_scale(batch, heads, rate, like).values() == s);
    // The scope of the second part of a larger batch.
    const RandomScope rest({.seed = 3, .step = 1, .first_sample = 1000});
    const std::vector<double> tail = nn::drop_head_scale(10, heads, rate, like).values();
    CHECK(std::equal(tail.begin(), tail.end(), s.begin() + 1000 * heads));
  }
  // The draw of a head is number head % 8 of block head / 8, with purpose 7.
  const RandomScope random({.seed = 3, .step = 6, .first_sample = 2});
  const std::vector<double> s = nn::drop_head_scale(2, heads, 0.5, like).values();
  for (std::uint32_t b = 0; b < 2; ++b)
    for (std::uint32_t h = 0; h < heads; ++h)
      CHECK((s[b * heads + h] == 0) ==
            (draw16(philox({6, 7, 2 + b, h / 8}, random_key(3, "")), static_cast<int>(h % 8)) < 32768));
}

TEST_CASE("DropHead's rate follows a V over training") {
  CHECK(nn::drop_head_rate(0.2, 0, 101) == 0.2);
  CHECK(nn::drop_head_rate(0.2, 25, 101) == Approx(0.1));
  CHECK(nn::drop_head_rate(0.2, 50, 101) == 0);
  CHECK(nn::drop_head_rate(0.2, 75, 101) == Approx(0.1));
  CHECK(nn::drop_head_rate(0.2, 100, 101) == 0.2);
  CHECK(nn::drop_head_rate(0.2, 0, 1) == 0.2);
  CHECK_THAT(error_of([] { nn::drop_head_rate(0.2, 5, 5); }), contains("[drop_head] expected a step in 0..4, got 5"));
  CHECK_THAT(error_of([] { nn::drop_head_scale(1, 2, 1, zeros({1})); }),
             contains("[drop_head] expected a rate in [0, 1), got 1"));
  CHECK_THAT(error_of([] { nn::drop_head_scale(2, 0, 0.1, zeros({1})); }),
             contains("at least 0 samples and one head, got 2 and 0"));
  const RandomScope random({.seed = 0, .step = 0});
  CHECK(nn::drop_head_scale(0, 2, 0.1, zeros({1})).shape() == Shape{0, 1, 2, 1});
}

TEST_CASE(
    "a layer scales its heads by DropHead's factors in training, also with a V-shaped rate and not in evaluation") {
  for (std::int64_t steps : {0, 21}) {
    nn::Attention layer(
        {.dim = 12, .heads = 3, .drop_head = {.rate = 0.6, .steps = steps}, .init = nn::Init::truncated_normal(0.5)});
    initialize(layer, 1);
    const Tensor x = random_normal({4, 5, 12}, 3, "x");
    const auto scaled = [&](double rate) {
      const PathScope scope(layer.path());
      const std::vector<double> h = attention_qkv(layer.first()(x), 3).values(),
                                s = nn::drop_head_scale(4, 3, rate, x).values();
      std::vector<double> y(h.size());
      for (std::size_t i = 0; i < h.size(); ++i) y[i] = h[i] * s[i / 60 * 3 + i % 12 / 4];
      return layer.last()(tensor(y, {4, 5, 12})).values();
    };
    for (std::uint32_t step : {0u, 4u}) {
      const RandomScope random({.seed = 2, .step = step});
      CHECK(relative_error(layer(x).values(), scaled(steps && step == 4 ? 0.36 : 0.6)) < 1e-6);
    }
    const RandomScope random({.seed = 2, .step = 10});  // step 10 is the minimum of the V-shaped rate
    CHECK((layer(x).values() == scaled(0)) == (steps == 21));
    layer.eval();
    CHECK(layer(x).values() == scaled(0));
  }
  CHECK_THAT(error_of([] { nn::Attention bad({.dim = 4, .heads = 2, .drop_head = {.rate = 1}}); }),
             contains("[attention] expected a DropHead rate in [0, 1), got 1"));
  CHECK_THAT(error_of([] { nn::Attention bad({.dim = 4, .heads = 2, .drop_head = {.rate = 0.1, .steps = -1}}); }),
             contains("DropHead steps of at least 0, got -1"));
}

TEST_CASE("the original form of stochastic depth scales in evaluation instead and draws the same samples") {
  nn::DropPath rescaled(0.25), original(0.25, 0, nn::DropPathForm::original);
  const RandomScope random({.seed = 3, .step = 1});
  const Tensor x = random_normal({200, 3}, 1, "x");
  const std::vector<double> a = rescaled(x).values(), b = original(x).values(), in = x.values();
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    CHECK((a[i] == 0) == (b[i] == 0));
    CHECK((b[i] == 0 || b[i] == in[i]));
    dropped += b[i] == 0;
  }
  CHECK(dropped > 0);
  original.eval();
  rescaled.eval();
  CHECK_FALSE(rescaled.row_scale(x).defined());
  CHECK(original.row_scale(x).values() == std::vector<double>(200, 0.75));
  const std::vector<double> e = original(x).values();
  for (std::size_t i = 0; i < in.size(); ++i) CHECK(e[i] == Approx(0.75 * in[i]));
  CHECK_FALSE(nn::DropPath(0, 0, nn::DropPathForm::original).row_scale(x).defined());
  CHECK_THAT(error_of([] { nn::DropPath bad(0.999999); }),
             contains("[drop_path] expected a rate of at most 1 - 2^-16, got 0.999999"));
  CHECK_THAT(error_of([] { nn::DropPath bad(1); }), contains("[drop_path] expected a rate in [0, 1), got 1"));
  CHECK_THAT(error_of([] { nn::Dropout bad(0.999999); }),
             contains("[dropout] expected a probability of at most 1 - 2^-16, got 0.999999"));
  CHECK_FALSE(nn::DropPath(0x1p-18).row_scale(x).defined());  // a rate below 2^-17 drops no sample
}
