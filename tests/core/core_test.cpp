#include <cmath>
#include <cstdint>
#include <limits>

#include "core/array.h"
#include "core/backend.h"
#include "core/random.h"
#include "core/scope.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("shapes print, index from both ends, and explain errors") {
  const Shape s{64, 65, 192};
  CHECK(to_string(s) == "[64, 65, 192]");
  CHECK(to_string(Shape{}) == "[]");
  CHECK(s.numel() == 64 * 65 * 192);
  CHECK(Shape{}.numel() == 1);
  CHECK(s[-1] == 192);
  CHECK(s.without(1) == Shape({64, 192}));
  CHECK(s.with(-1, 3) == Shape({64, 65, 3}));
  CHECK(s.appended(2).rank() == 4);
  CHECK_THAT(error_of([&] { (void)s[3]; }),
             contains("[shape] expected an axis in -3..2 of shape [64, 65, 192], got 3"));
  CHECK_THAT(error_of([] { Shape{2, -1}; }), contains("got -1 on axis 1"));
  CHECK_THAT(error_of([] {
               Shape{1ll << 32, 1ll << 32};
             }),
             contains("fewer than 2^59 elements, got [4294967296, 4294967296]"));
  CHECK_THAT(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), contains("at most 8 axes, got 9"));
}

TEST_CASE("a shape with other extents is checked, and errors name the op") {
  const Shape s{4, 0, 5};
  CHECK_THAT(error_of([&] { (void)s.with(1, -3); }),
             contains("[shape] expected extents of at least 0, got -3 on axis 1"));
  CHECK_THAT(error_of([&] { (void)s.with(0, std::int64_t{1} << 58, "pad"); }),
             contains("[pad] expected fewer than 2^59 elements, got [288230376151711744, 0, 5]"));
  CHECK_THAT(error_of([&] { (void)s.appended(-1, "one_hot"); }), contains("[one_hot] expected extents of at least 0"));
  CHECK_THAT(error_of([&] { (void)s.appended(std::int64_t{1} << 62); }), contains("fewer than 2^59 elements"));
  CHECK_THAT(error_of([&] { (void)Shape({1, -2}, "eye"); }), contains("[eye] expected extents of at least 0, got -2"));
  CHECK(s.with(-1, std::int64_t{1} << 57) == Shape({4, 0, std::int64_t{1} << 57}));
}

TEST_CASE("sums and products of extents are exact or an error") {
  constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max(), most = Shape::max_numel;
  CHECK(extent_sum("op", {3, 0, 4}) == 7);
  CHECK(extent_sum("op", {}) == 0);
  CHECK(extent_sum("op", {most - 1, 1}) == most);
  CHECK(extent_product("op", {3, 4, 5}) == 60);
  CHECK(extent_product("op", {}) == 1);
  CHECK(extent_product("op", {most, 0}) == 0);
  CHECK(extent_product("op", {most / 2, 2}) == most);
  CHECK_THAT(error_of([] {
               (void)extent_sum("pad", {big, 5, big});
             }),
             contains("[pad] expected extents of at least 0 whose sum is at most 2^59, got 9223372036854775807 + 5 + "
                      "9223372036854775807"));
  CHECK_THAT(
      error_of([] {
        (void)extent_product("repeat", {most, 3});
      }),
      contains("[repeat] expected extents of at least 0 whose product is at most 2^59, got 576460752303423488 x 3"));
  for (const std::vector<std::int64_t>& bad : {std::vector<std::int64_t>{most, 1}, {-1, 2}, {big, big}, {big, 1, 0}}) {
    if (bad.back() != 0) CHECK_THROWS_AS(extent_sum("op", bad), Error);
    if (bad != std::vector<std::int64_t>{most, 1}) CHECK_THROWS_AS(extent_product("op", bad), Error);
  }
}

TEST_CASE("broadcasting follows NumPy's rules") {
  CHECK(broadcast({2, 1, 5}, {3, 1}, "add") == Shape({2, 3, 5}));
  CHECK(broadcast({}, {4}, "add") == Shape({4}));
  CHECK(broadcasts_to({3, 1}, {2, 3, 5}));
  CHECK_FALSE(broadcasts_to({2, 3, 5}, {3, 5}));
  CHECK_FALSE(broadcasts_to({2}, {3}));
  CHECK_THAT(error_of([] {
               broadcast({2, 3}, {4}, "add");
             }),
             contains("[add]") && contains("[2, 3] and [4] (axis -1: 3 and 4)"));
}

TEST_CASE("copies of an array share its buffer and its version") {
  const Array a = array_from(std::vector<double>{1, 2, 3, 4}, {2, 2}, DType::f32, Device::cpu), flat = a.reshaped({4});
  Out(flat).mutable_data<float>()[3] = 7;
  CHECK(to_vector(a) == std::vector<double>{1, 2, 3, 7});
  CHECK(flat.shares_buffer_with(a));
  const std::uint32_t before = a.version();
  copy_into(array_from(std::vector<double>{0, 0, 0, 0}, {4}, DType::f32, Device::cpu), flat);
  CHECK(a.version() == before + 1);
  CHECK_THAT(error_of([&] { (void)a.reshaped({3}); }), contains("[reshape]"));
  CHECK_THAT(
      error_of([&] { (void)a.data<double>(); }),
      contains("[array] expected the elements of an f32 array to be read with data<float>(), got data<double>()"));
  CHECK_THAT(error_of([&] { (void)item(a); }), contains("[item] expected one element, got shape [2, 2]"));
  CHECK_THAT(error_of([] { (void)array_from(std::vector<double>{1}, {2}, DType::f32, Device::cpu); }),
             contains("expected 2 values for shape [2], got 1"));
  CHECK(reinterpret_cast<std::uintptr_t>(a.bytes()) % 64 == 0);
  CHECK(Array({0, 3}, DType::f32, Device::cpu).numel() == 0);
}

TEST_CASE("draws depend on seed, path, step, purpose and element only") {
  const std::uint64_t key = random_key(1, "blocks.3.attn");
  CHECK(key == random_key(1, "blocks.3.attn"));
  CHECK(key != random_key(2, "blocks.3.attn"));
  CHECK(key != random_key(1, "blocks.4.attn"));
  CHECK(attention_draw(key, 5, Purpose::drop_key, 2, 3, 1) == philox({5, 1, 2, 3u << 16 | 1}, key));
  CHECK(element_draw(key, 5, Purpose::dropout, 0x100000002ull) == philox({5, 3, 1, 2}, key));
  const Draw d{0x22221111u, 0x44443333u, 0x66665555u, 0x88887777u};
  for (int i = 0; i < 8; ++i) CHECK(draw16(d, i) == 0x1111u * static_cast<unsigned>(i + 1));  // low half first
  CHECK(drop_threshold(0) == 0);
  CHECK(drop_threshold(0.1) == 6554);
  CHECK(drop_threshold(1) == 65536);
}

TEST_CASE("normal draws have the moments of a normal distribution and are independent") {
  std::vector<double> v(200'000);
  normal_draws(random_key(0, "w"), v);
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    mean += v[i];
    square += v[i] * v[i];
    fourth += std::pow(v[i], 4);
    neighbours += i ? v[i] * v[i - 1] : 0;
  }
  const auto n = static_cast<double>(v.size());
  CHECK(std::abs(mean / n) < 0.01);
  CHECK(square / n == Approx(1).epsilon(0.01));
  CHECK(fourth / n == Approx(3).epsilon(0.03));
  CHECK(std::abs(neighbours / n) < 0.01);
}

TEST_CASE("scopes nest, end with their block, and appear in error messages") {
  CHECK(current_place().empty());
  CHECK(error_of([] { check(false, "[op] expected {}, got {}", 1, 2); }) == "[op] expected 1, got 2");
  {
    const PathScope outer(std::make_shared<const std::string>("ViT"));
    const PhaseScope phase("forward");
    {
      const PathScope inner(std::make_shared<const std::string>("ViT.head"));
      CHECK(current_place() == " in ViT.head, forward");
    }
    const RandomScope random({.seed = 1, .step = 4});
    CHECK(current_place() == " in ViT, forward, step 4");
    CHECK(error_of([] { check(false, "[op] no"); }) == "[op] no\n       in ViT, forward, step 4");
  }
  CHECK(current_place().empty());
  CHECK(random_state().seed == 0);
}

TEST_CASE("a DefaultsScope sets dtype and device until it ends") {
  CHECK(defaults().dtype == DType::f32);
  {
    const DefaultsScope f64({DType::f64, Device::reference});
    CHECK(defaults().dtype == DType::f64);
  }
  CHECK(defaults().device == Device::cpu);
  CHECK(num_threads() >= 1);
  CHECK_THAT(cpu_description(), contains("threads") && contains("oneDNN"));
}
