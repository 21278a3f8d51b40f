#include "tests/support/emulated_amx.h"

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/amx_product.h"
#include "core/error.h"

namespace plumb::test {
namespace {

struct EmulatedRegisters {
  using Tile = std::array<std::array<std::uint32_t, 16>, 16>;
  static inline std::atomic<std::int64_t> products = 0;
  struct State {
    bool configured = false;
    std::array<Tile, 8> tiles{};
  };
  static State& state() {
    thread_local State s;
    return s;
  }
  static Tile& tile(int t) {
    internal_check(state().configured, "tile register {} is used without a configuration", t);
    return state().tiles[static_cast<std::size_t>(t)];
  }

  static void begin() {
    internal_check(!state().configured, "the tile registers are configured twice");
    state() = {.configured = true};
  }
  static void end() { state().configured = false; }

  template <int t>
  static void zero() {
    tile(t) = {};
  }
  template <int t>
  static void load(const void* from, std::int64_t row_bytes) {
    for (std::size_t r = 0; r < 16; ++r)
      std::memcpy(tile(t)[r].data(), static_cast<const char*>(from) + static_cast<std::int64_t>(r) * row_bytes, 64);
  }
  template <int t>
  static void store(void* to, std::int64_t row_bytes) {
    for (std::size_t r = 0; r < 16; ++r)
      std::memcpy(static_cast<char*>(to) + static_cast<std::int64_t>(r) * row_bytes, tile(t)[r].data(), 64);
  }

  // TDPBF16PS: the products of the even and of the odd elements have a sum each, by multiply-adds. Their sum is added
  // to c. Denormal operands and results are 0.
  static float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
  template <int c, int a, int b>
  static void add_product() {
    ++products;
    const Tile &left = tile(a), &right = tile(b);
    Tile& sums = tile(c);
    for (std::size_t m = 0; m < 16; ++m) {
      std::array<float, 16> even{}, odd{};
      for (std::size_t k = 0; k < 16; ++k) {
        const float x = flushed(std::bit_cast<float>(left[m][k] << 16)),
                    y = flushed(std::bit_cast<float>(left[m][k] & 0xffff0000u));
        for (std::size_t n = 0; n < 16; ++n) {
          even[n] = flushed(std::fma(x, flushed(std::bit_cast<float>(right[k][n] << 16)), even[n]));
          odd[n] = flushed(std::fma(y, flushed(std::bit_cast<float>(right[k][n] & 0xffff0000u)), odd[n]));
        }
      }
      for (std::size_t n = 0; n < 16; ++n)
        sums[m][n] = std::bit_cast<std::uint32_t>(
            flushed(flushed(std::bit_cast<float>(sums[m][n])) + flushed(even[n] + odd[n])));
    }
  }
};

}  // namespace

const cpu::AmxKernels emulated_amx{EmulatedRegisters::begin, EmulatedRegisters::end,
                                   cpu::amx_multiply<EmulatedRegisters>};

std::int64_t emulated_products() { return EmulatedRegisters::products; }

}  // namespace plumb::test
