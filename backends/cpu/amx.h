// Products of bf16 matrices by AMX. AMX has eight tile registers of 16 rows of 64 bytes. One instruction multiplies a
// tile of 16 x 32 elements by a tile of 32 x 16, and adds the result to a tile of 16 x 16 sums in f32 (TDPBF16PS in
// volume 2 of Intel's Software Developer's Manual).
#pragma once

#include <cstdint>

#include "backends/cpu/scratch.h"
#include "core/bfloat16.h"

namespace plumb::cpu {

// The rows and columns of a tile of sums, and the inner extent of a product of two tiles.
constexpr std::int64_t tile_side = 16, tile_depth = 32;
// The rows and columns of a block of 2 x 2 tiles of sums.
constexpr std::int64_t block_side = 2 * tile_side;

// A product c = start + a b, where c has at most 2 x 2 tiles.
struct AmxProduct {
  const bfloat16* a;   // [16 rows, 32 steps]
  std::int64_t a_row;  // elements from one row of a to the next
  // [32 steps, 16 columns], packed: for each step, one tile for each 16 columns. Row i of a tile alternates between the
  // rows 2 i and 2 i + 1 of the matrix.
  const bfloat16* b;
  std::int64_t steps;
  // The initial values of c; null means 0. `start_row` counts the floats from one row to the next. With start_row = 0,
  // all rows have the same initial values.
  const float* start;
  std::int64_t start_row;
  float* c;  // [16 rows, 16 columns]
  std::int64_t c_row;
  int rows, columns;  // the number of tiles, 1 or 2
};

// A range of steps of a product's inner extent.
struct AmxSteps {
  std::int64_t first, count;
};

// The code that uses tile registers.
struct AmxKernels {
  // Configure and release the tile registers of the calling thread. oneDNN configures the registers for itself, so a
  // pair of these calls encloses the products of each block of work.
  void (*begin)();
  void (*end)();
  void (*multiply)(const AmxProduct&);
};

// The kernels for AMX. Null if the processor has no AMX, if ONEDNN_MAX_CPU_ISA forbids AMX, if the system refuses AMX,
// or if Plumb was built by a compiler without AMX.
const AmxKernels* amx_kernels();
// Replaces the kernels of this process: tests run the same code on emulated registers. Null restores the usual kernels.
// No kernel may run meanwhile.
void set_amx_kernels(const AmxKernels* kernels);

// Configures the tile registers while an object of this class lives.
class AmxScope {
 public:
  AmxScope() { kernels_.begin(); }
  ~AmxScope() { kernels_.end(); }
  void multiply(const AmxProduct& p) const { kernels_.multiply(p); }
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;

 private:
  const AmxKernels& kernels_ = *amx_kernels();
};

// Two neighbouring elements of bf16 as one integer, the first element in the lower half.
inline const std::uint32_t* pairs_of(const bfloat16* p) { return reinterpret_cast<const std::uint32_t*>(p); }
inline std::uint32_t* pairs_of(bfloat16* p) { return reinterpret_cast<std::uint32_t*>(p); }

// A matrix B [K, N] in bf16, packed into panels of 32 columns for products x B. Rows up to the next multiple of 32 and
// columns up to the next multiple of 16 are 0. B = w^T for w [N, K] if `transposed`, else B = w [K, N].
class AmxMatrix {
 public:
  // The elements are not initialized. The caller packs them.
  AmxMatrix(std::int64_t K, std::int64_t N)
      : K_(K), N_(N), memory_(steps() * tile_depth * round_up(N, tile_side) / 2) {}
  AmxMatrix(std::int64_t K, std::int64_t N, const float* w, bool transposed);

  std::int64_t K() const { return K_; }
  std::int64_t N() const { return N_; }
  std::int64_t steps() const { return round_up(K_, tile_depth) / tile_depth; }
  AmxSteps all_steps() const { return {0, steps()}; }
  std::int64_t panels() const { return round_up(N_, block_side) / block_side; }
  // The number of tiles of a panel's width: 1 or 2.
  int tiles(std::int64_t panel) const { return N_ - block_side * panel > tile_side ? 2 : 1; }
  // The elements of a panel from a step on.
  const bfloat16* panel(std::int64_t panel, std::int64_t step) const { return elements(panel, step, 0); }
  // Tile `t` of a step of a panel, as pairs of elements, to be packed.
  std::uint32_t* tile(std::int64_t panel, std::int64_t step, int t) { return pairs_of(elements(panel, step, t)); }

 private:
  bfloat16* elements(std::int64_t panel, std::int64_t step, int t) const {
    return reinterpret_cast<bfloat16*>(memory_.data()) +
           (2 * panel * steps() + step * tiles(panel) + t) * tile_side * tile_depth;
  }

  std::int64_t K_, N_;
  Scratch memory_;
};

// Returns the number of rows of x per block for products x B: pairs of tiles, and so few that up to K = 256 the rows of
// x and a panel of B fit into a first-level cache of 48 KiB.
inline std::int64_t amx_rows(std::int64_t R) { return R >= 1024 ? 64 : 32; }

// Computes y [m, N] = a^T B for a [K, m], with sums in f32. m, K and N must not be 0. The bits do not depend on the
// number of threads.
void amx_product_over_rows(std::int64_t m, const bfloat16* a, const AmxMatrix& b, float* y);

}  // namespace plumb::cpu
