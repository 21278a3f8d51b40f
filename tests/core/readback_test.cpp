#include "core/readback.h"
#include "core/host_values.h"

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a readback has the values of the array at the time of the request") {
  const Out a(array_from(std::vector<double>{1.5, -2}, {2}, DType::bf16, Device::cpu));
  const Readback first(a), same = first;
  a.mutable_data<bfloat16>()[0] = bfloat16(7.0f);
  CHECK(first.arrived());
  CHECK(first.values() == std::vector<double>{1.5, -2});
  CHECK(same.values() == first.values());
  CHECK(Readback(a).values() == std::vector<double>{7, -2});
  CHECK(Readback(array_from(std::vector<std::int64_t>{}, {0}, Device::cpu)).values().empty());
}

TEST_CASE("a readback refuses many bytes and undefined arrays") {
  CHECK_THAT(error_of([] { Readback{array_from(std::vector<double>(33), {33}, DType::f64, Device::cpu)}; }),
             contains("[readback] expected at most 256 bytes, got f64 [33]: use to_vector()"));
  CHECK_THAT(error_of([] { Readback{Array()}; }), contains("[readback] expected a tensor, got an undefined tensor"));
}

TEST_CASE("arrays_from makes arrays in one buffer that have separate elements and versions") {
  const std::vector<float> x{1, 2, 3};
  const std::vector<std::int64_t> n{4, 5};
  const std::vector<Array> parts = arrays_from(
      {{x.data(), {3, 1}, DType::f32}, {nullptr, {0}, DType::f32}, {n.data(), {2}, DType::i64}}, Device::cpu);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].shape() == Shape{3, 1});
  CHECK(to_vector(parts[0]) == std::vector<double>{1, 2, 3});
  CHECK(parts[1].numel() == 0);
  CHECK(to_vector(parts[2]) == std::vector<double>{4, 5});
  CHECK_FALSE(parts[0].shares_buffer_with(parts[2]));
  Out(parts[0]).bump_version();
  CHECK(parts[0].version() == 1);
  CHECK(parts[2].version() == 0);
}
