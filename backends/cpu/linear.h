// Types and functions of the linear layer that do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/cpu/amx.h"
#include "backends/cpu/elements.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "core/backend.h"

namespace plumb::cpu {

// A matrix B [K, N] for products x B. panels-inl.h packs B into panels.
struct PackedMatrix {
  std::int64_t K, N;
  const float* w;  // [N, K] if `transposed` (then B = w^T), else [K, N]
  bool transposed;
  const float* scale;  // [K], a factor for each row of B, or null; must be null if `transposed`
  float* panels;       // packed_floats() floats; null if w already has the packed layout
  bool rounded;        // if true, the elements of B are rounded to bf16
};
// Returns the number of floats that a packed [K, N] matrix takes.
inline std::int64_t packed_floats(std::int64_t K, std::int64_t N) { return K * ((N + 15) / 16 * 16); }

// A matrix that is ready for products. If the matrix must be packed, the packed copy lives as long as this object.
class Packed {
 public:
  Packed(PackedMatrix b, bool wanted);  // defined in linear_packing_simd.cpp
  const PackedMatrix& matrix() const { return b_; }

 private:
  PackedMatrix b_;
  Scratch panels_;
};

// A matrix in bf16 for products by bf16 instructions: those of AMX by Plumb's kernels if amx_kernels() exist, else
// those that oneDNN uses.
struct HalfMatrix {
  std::optional<AmxMatrix> amx;
  std::optional<PackedBf16> onednn;

  // B [K, N] = w^T for w [N, K] if `transposed`, else w [K, N]. `rows` is the number of rows of x per block.
  HalfMatrix(std::int64_t K, std::int64_t N, const float* w, bool transposed, std::int64_t rows) {
    if (amx_kernels())
      amx.emplace(K, N, w, transposed);
    else
      onednn.emplace(K, N, w, transposed, rows);
  }
};

// The arguments of the forward kernel for a block of rows. Pointers refer to whole arrays. A null pointer means that
// the array is absent or not wanted.
struct LinearForward {
  PackedMatrix b;             // w^T
  const HalfMatrix* half;     // the same matrix in bf16, if bf16 instructions compute the product
  Elements x;                 // [R, K]
  const float *gamma, *beta;  // parameters of the layer norm before the product
  float eps;
  float *mean, *rstd;
  const float* bias;  // [N rounded up to a multiple of 16]
  LinearCall::After after;
  Gelu gelu;
  Elements slope;
  const float *skip, *gate;  // skip: [R, N]; gate: [N] or null
  const float* row_scale;
  std::int64_t rows_per_sample;
  Elements y;  // [R, N]
};

// The arguments of the backward kernel for a block of rows. Pointers refer to whole arrays. A null pointer means that
// the array is absent or not wanted.
struct LinearBackward {
  PackedMatrix b;  // w, with each row multiplied by the gate
  const HalfMatrix* half;
  std::int64_t rows, block_rows;
  bool want_dx;    // whether dx or the gradients of the layer norm before the product are wanted
  Elements dy;     // [R, N]
  Elements slope;  // [R, N]
  // [R, N]: dy times slope, rounded for bf16. du may be dy itself. If du is null, the values live only during a few
  // blocks.
  Elements du;
  float* db;   // [blocks, N]: one sum for each block of rows
  Elements x;  // [R, K]
  const float *gamma, *beta, *mean, *rstd;
  // [R, K]: the operand of dw, which is the recomputed layer norm, or x (rounded for bf16). If operand is null, the
  // values live only during a few blocks.
  Elements operand;
  AmxMatrix* packed_operand;  // if AMX computes dw, each block rounds its rows of `operand` and packs them here
  // [.., N, K]: each sum covers `blocks_a_sum` blocks. If dw is null, whole_weight_gradient() computes dw.
  float* dw;
  std::int64_t blocks_a_sum;
  Elements dx;  // [R, K]
  bool add_to_dx;
  float *dgamma, *dbeta;  // [blocks, K]
};

// Return the f32 elements of an array, or null if the array is undefined.
inline const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
inline float* out(const Out& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

// Returns the gate with one factor for each of N outputs, or an undefined array if there is no gate.
inline Array per_output(const Array& gate, std::int64_t N) {
  if (!gate.defined() || gate.numel() == N) return gate;
  Array all = empty_like(gate, {N});
  std::fill_n(Out(all).mutable_data<float>(), N, *gate.data<float>());
  return all;
}

// Returns the number of rows per block for passes without partial sums, and for products by oneDNN. This number is
// twice partial_rows() if at least eight blocks remain, else partial_rows(). Larger blocks are faster, because each
// block reads the panels again, and because one call of oneDNN costs as much as about ten rows.
inline std::int64_t more_rows(std::int64_t R) {
  const std::int64_t rows = partial_rows(R);
  return R > 15 * rows ? 2 * rows : rows;
}

// Runs the parts of a product with parallel_for(). Products with fewer than small_product operations stay on the
// calling thread.
template <class F>
void each_part(std::int64_t n, std::int64_t grain, std::int64_t operations, F&& f) {
  parallel_for(n, grain, std::forward<F>(f), operations < small_product ? n + 1 : 2);
}

// Returns whether bf16 instructions compute the products of this call.
inline bool by_bf16_instructions(const LinearCall& call) {
  return call.products == Precision::bf16 && (amx_kernels() || bf16_products().faster_than_f32);
}

// Returns the number of rows per block for products by bf16 instructions.
inline std::int64_t half_rows(std::int64_t R) { return amx_kernels() ? amx_rows(R) : more_rows(R); }

// The room for rows [rows, K] of an operand of a product: whole tiles of rows.
inline std::int64_t half_floats(std::int64_t rows, std::int64_t K) { return round_up(rows, tile_side) * K / 2; }

}  // namespace plumb::cpu
