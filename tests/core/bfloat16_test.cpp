#include "core/bfloat16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/array.h"
#include "core/backend.h"
#include "core/precision.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

bool is_nan(std::uint16_t bits) { return (bits & 0x7fff) > 0x7f80; }

// Returns the value of a bit pattern by the definition of the format. For the pattern of infinity, returns the next
// number that the format would have.
double value_of(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 7 & 255), fraction = static_cast<int>(bits & 127);
  const double size = exponent == 0 ? std::ldexp(fraction, -133) : std::ldexp(128 + fraction, exponent - 134);
  return bits >> 15 ? -size : size;
}

// Rounds a number to the nearest, ties to even, by searching the two neighbours of |x|.
std::uint16_t nearest_bits(double x) {
  unsigned low = 0, high = 0x7f80;  // bit patterns around |x|; 0x7f80 is infinity
  const double size = std::abs(x);
  if (size >= value_of(high)) low = high;
  while (high - low > 1) (value_of((low + high) / 2) <= size ? low : high) = (low + high) / 2;
  const double down = size - value_of(low), up = value_of(high) - size;
  const unsigned chosen = low == high || down < up || (down == up && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(chosen | (std::signbit(x) ? 0x8000 : 0));
}

}  // namespace

TEST_CASE("every bfloat16 survives the conversion to float and back") {
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float x = bfloat16::from_bits(bits);
    if (is_nan(bits)) {
      REQUIRE(std::isnan(x));
      REQUIRE(bfloat16(x).bits == (bits | 0x40));  // the NaN is made quiet and otherwise unchanged
    } else {
      REQUIRE((std::isinf(x) ? (bits & 0x7fff) == 0x7f80 : static_cast<double>(x) == value_of(bits)));
      REQUIRE(bfloat16(x).bits == bits);
      REQUIRE(bfloat16(static_cast<double>(x)).bits == bits);
    }
  }
}

TEST_CASE("f32 and f64 round to the nearest bfloat16, ties to even") {
  std::mt19937_64 generator(3);
  for (int i = 0; i < 200'000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
    if (std::isnan(x)) {
      REQUIRE(is_nan(bfloat16(x).bits));
      continue;
    }
    REQUIRE(bfloat16(x).bits == nearest_bits(x));
  }
  // Tests the middle between two neighbours, and the doubles next to the middle. Rounding these doubles to f32 first
  // would give the middle.
  for (unsigned bits = 0; bits < 0x7f80; bits += 1 + bits % 7) {
    const double middle = (value_of(bits) + value_of(bits + 1)) / 2;
    for (double x : {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300), -middle,
                     -std::nextafter(middle, 0), -std::nextafter(middle, 1e300)}) {
      REQUIRE(bfloat16(x).bits == nearest_bits(x));
      if (static_cast<double>(static_cast<float>(x)) == x)
        REQUIRE(bfloat16(static_cast<float>(x)).bits == nearest_bits(x));
    }
  }
  for (double x : {1e-300, -1e-300, 1e300, -1e300, 0.0, -0.0}) CHECK(bfloat16(x).bits == nearest_bits(x));
  CHECK(is_nan(bfloat16(std::numeric_limits<double>::quiet_NaN()).bits));
  CHECK(is_nan(bfloat16(std::bit_cast<float>(0x7f800001u)).bits));  // a NaN whose payload does not fit
  CHECK(static_cast<float>(bfloat16(std::numeric_limits<float>::max())) == std::numeric_limits<float>::infinity());
  CHECK(bfloat16(3).bits == 0x4040);
  static_assert(bfloat16(1.0f).bits == 0x3f80 && static_cast<float>(bfloat16(1.00390625f)) == 1.0f);
}

TEST_CASE("arrays of bf16 are made, filled, cast and read") {
  for (Device device : {Device::reference, Device::cpu}) {
    const std::vector<double> values{1, -2.5, 1.001, 3e38, 1e-40, 0};
    const Array a = array_from(values, {2, 3}, DType::bf16, device);
    const std::vector<double> kept = to_vector(a);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(kept[i] == value_of(nearest_bits(values[i])));
    CHECK(a.data<bfloat16>()[1].bits == 0xc020);
    CHECK(to_vector(full_like(a, {3}, 0.1)) == std::vector<double>(3, value_of(nearest_bits(0.1))));
    CHECK(item(full_like(a, {}, -7)) == -7);
    const Out copy = empty_like(a);
    copy_into(a, copy);
    CHECK(to_vector(copy) == kept);
    for (DType other : {DType::f32, DType::f64}) {
      const Out wide(Array({2, 3}, other, device)), back = empty_like(a), narrow = empty_like(a);
      kernels(a).cast(a, wide);
      CHECK(to_vector(wide) == kept);
      kernels(a).cast(wide, back);
      CHECK(to_vector(back) == kept);
      kernels(a).cast(array_from(values, {2, 3}, other, device), narrow);
      CHECK(to_vector(narrow) == kept);
    }
    const std::vector<std::int64_t> chosen{1, 0, 1};
    const int axes[] = {1, 0};
    const Out rows(Array({3, 3}, DType::bf16, device)), turned(Array({3, 2}, DType::bf16, device)),
        column(Array({2, 1}, DType::bf16, device));
    kernels(a).gather(a, array_from(std::span(chosen), {3}, device), rows);
    CHECK(to_vector(rows) ==
          std::vector{kept[3], kept[4], kept[5], kept[0], kept[1], kept[2], kept[3], kept[4], kept[5]});
    kernels(a).permute(a, std::span<const int>(axes), turned);
    CHECK(to_vector(turned) == std::vector{kept[0], kept[3], kept[1], kept[4], kept[2], kept[5]});
    kernels(a).slice(a, 1, 1, column);
    CHECK(to_vector(column) == std::vector{kept[1], kept[4]});
    kernels(a).assign_slice(column, 1, 0, copy);
    CHECK(to_vector(copy) == std::vector{kept[1], kept[1], kept[2], kept[4], kept[4], kept[5]});
  }
  CHECK(size_of(DType::bf16) == 2);
  CHECK(std::string(enum_name(DType::bf16)) == "bf16");
  CHECK_FALSE(is_float(DType::bf16));
  CHECK_THAT(error_of([] { (void)array_from(std::vector<double>{1}, {1}, DType::u8, Device::cpu); }),
             contains("[array] expected f32, f64 or bf16 for floating values, got u8"));
}

TEST_CASE("precision is f32 unless a PrecisionScope is open") {
  CHECK(precision() == Precision::f32);
  {
    const PrecisionScope outer(Precision::bf16);
    CHECK(precision() == Precision::bf16);
    {
      const PrecisionScope inner(Precision::f32);
      CHECK(precision() == Precision::f32);
    }
    CHECK(precision() == Precision::bf16);
  }
  CHECK(precision() == Precision::f32);
}
