// The tile registers of the processor. The functions of this file are compiled for AMX and may run only on processors
// with AMX.
#include "backends/cpu/amx_registers.h"

#if defined(__AMX_BF16__) && defined(__x86_64__)
#include <immintrin.h>

#include "backends/cpu/amx_product.h"

namespace plumb::cpu {
namespace {

// The operand of LDTILECFG.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

// The compiler's functions accept only literal numbers of registers.
#define PLUMB_EACH_TILE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

struct Registers {
  static void begin() {
    static const TileConfiguration all;
    _tile_loadconfig(&all);
  }
  static void end() { _tile_release(); }

  template <int t>
  static void zero() {
    static_assert(t < 8);
#define PLUMB_ZERO(n) \
  if constexpr (t == n) _tile_zero(n);
    PLUMB_EACH_TILE(PLUMB_ZERO)
  }
  template <int t>
  static void load(const void* from, std::int64_t row_bytes) {
    static_assert(t < 8);
#define PLUMB_LOAD(n) \
  if constexpr (t == n) _tile_loadd(n, from, row_bytes);
    PLUMB_EACH_TILE(PLUMB_LOAD)
  }
  template <int t>
  static void store(void* to, std::int64_t row_bytes) {
    static_assert(t < 8);
#define PLUMB_STORE(n) \
  if constexpr (t == n) _tile_stored(n, to, row_bytes);
    PLUMB_EACH_TILE(PLUMB_STORE)
  }
  template <int c, int a, int b>
  static void add_product() {
    static_assert(c < 4 && a == 4 + c / 2 && b == 6 + c % 2);
#define PLUMB_ADD(C, A, B) \
  if constexpr (c == C && a == A && b == B) _tile_dpbf16ps(C, A, B);
    PLUMB_ADD(0, 4, 6) PLUMB_ADD(1, 4, 7) PLUMB_ADD(2, 5, 6) PLUMB_ADD(3, 5, 7)
  }
};

void multiply(const AmxProduct& p) {
  __asm__ volatile("" ::: "memory");  // GCC does not know that the instructions read memory
  amx_multiply<Registers>(p);
}

constexpr AmxKernels kernels{Registers::begin, Registers::end, multiply};

}  // namespace

const AmxKernels* amx_registers() { return &kernels; }

}  // namespace plumb::cpu
#else
namespace plumb::cpu {

const AmxKernels* amx_registers() { return nullptr; }

}  // namespace plumb::cpu
#endif
