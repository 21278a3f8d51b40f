// The product of amx.h for a class of tile registers: those of the processor (amx_registers.cpp), or emulated ones
// (tests/support/emulated_amx.cpp). The class has static functions. Their template arguments are numbers of registers:
//   begin(), end(), zero<t>(), add_product<c, a, b>(),
//   load<t>(address, bytes from one row to the next), store<t>(address, bytes from one row to the next).
#pragma once

#include <type_traits>
#include <utility>

#include "backends/cpu/amx.h"

namespace plumb::cpu {

// Calls f with the numbers 0 to n - 1, as constants.
template <int n, class F>
constexpr void each_constant(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (f(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, n>());
}

// Registers 0 to 3 hold the sums, 4 and 5 the tiles of a, 6 and 7 the tiles of b.
template <class Registers, int rows, int columns>
void amx_multiply(const AmxProduct& p) {
  constexpr std::int64_t half = sizeof(bfloat16), single = sizeof(float), tile = tile_depth * tile_side;
  const auto each_sum = [](auto&& f) {
    each_constant<rows>([&](auto r) { each_constant<columns>([&](auto c) { f(r, c); }); });
  };
  each_sum([&](auto r, auto c) {
    if (p.start)
      Registers::template load<2 * r + c>(p.start + r * tile_side * p.start_row + c * tile_side, p.start_row * single);
    else
      Registers::template zero<2 * r + c>();
  });
  for (std::int64_t step = 0; step < p.steps; ++step) {
    each_constant<rows>([&](auto r) {
      Registers::template load<4 + r>(p.a + r * tile_side * p.a_row + step * tile_depth, p.a_row * half);
    });
    each_constant<columns>([&](auto c) { Registers::template load<6 + c>(p.b + (step * columns + c) * tile, 64); });
    each_sum([&](auto r, auto c) { Registers::template add_product<2 * r + c, 4 + r, 6 + c>(); });
  }
  each_sum([&](auto r, auto c) {
    Registers::template store<2 * r + c>(p.c + r * tile_side * p.c_row + c * tile_side, p.c_row * single);
  });
}

template <class Registers>
void amx_multiply(const AmxProduct& p) {
  if (p.rows == 2)
    p.columns == 2 ? amx_multiply<Registers, 2, 2>(p) : amx_multiply<Registers, 2, 1>(p);
  else
    p.columns == 2 ? amx_multiply<Registers, 1, 2>(p) : amx_multiply<Registers, 1, 1>(p);
}

}  // namespace plumb::cpu
