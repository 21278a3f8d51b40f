// bfloat16: the upper half of an f32 (sign, 8 bits of exponent, 7 bits of fraction). bfloat16 is a storage type: values
// are read exactly as f32 and rounded once when they are written; no arithmetic is done in bfloat16.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace plumb {

// A 16-bit floating-point number, which converts to float exactly.
struct bfloat16 {
  std::uint16_t bits;  // the bit pattern

  bfloat16() = default;
  // Rounds to the nearest value, ties to even, as hardware does. Values beyond the largest finite bfloat16 become
  // infinite, denormals are kept, and a NaN stays a (quiet) NaN with its sign and the upper bits of its payload.
  constexpr explicit bfloat16(float x) : bits(rounded(std::bit_cast<std::uint32_t>(x))) {}
  // Rounds a double or an integer once, to the nearest value, ties to even.
  constexpr explicit bfloat16(double x) : bfloat16(to_odd(x)) {}
  constexpr explicit bfloat16(std::integral auto x) : bfloat16(static_cast<double>(x)) {}
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

  // The number with this bit pattern.
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 x(0.0f);
    x.bits = bits;
    return x;
  }

 private:
  static constexpr std::uint16_t rounded(std::uint32_t x) {
    if ((x & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(x >> 16 | 0x40);
    return static_cast<std::uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
  // Rounds a double to an f32 by round-to-odd: if x is not an f32, the result is the neighbour of x, towards 0 or away
  // from 0, whose last bit is odd. Rounding the f32 to bfloat16 gives the same as rounding x directly (Boldo, Melquiond
  // 2008).
  static constexpr float to_odd(double x) {
    const float nearest = static_cast<float>(x);
    const double back = nearest;
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (x != x || back == x || (bits & 1)) return nearest;
    const bool beyond = x > 0 ? back > x : back < x;  // bits - 1 is nearer to 0
    return std::bit_cast<float>(beyond ? bits - 1 : bits + 1);
  }
};
static_assert(sizeof(bfloat16) == 2);

}  // namespace plumb
