// Parts of the linear layer that do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <utility>

#include "backends/cpu/elements.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "core/backend.h"

namespace plumb::cpu {

// A matrix B [K, N] for products x B, packed by panels-inl.h.
struct PackedMatrix {
  std::int64_t K, N;
  const float* w;  // [N, K] if transposed (B = w^T), else [K, N]
  bool transposed;
  const float* scale;  // [K], a factor for each row of B, or null; must be null if `transposed`
  float* panels;       // packed_floats() floats; null: w already has the packed layout
  bool rounded;        // round the elements of B to bf16
};
// The number of floats that a packed [K, N] matrix takes.
inline std::int64_t packed_floats(std::int64_t K, std::int64_t N) { return K * ((N + 15) / 16 * 16); }

// A matrix ready for products. If it must be packed, the packed copy lives as long as this object.
class Packed {
 public:
  Packed(PackedMatrix b, bool wanted);  // linear_packing_simd.cpp
  const PackedMatrix& matrix() const { return b_; }

 private:
  PackedMatrix b_;
  Scratch panels_;
};

// The arguments of the forward kernel for a block of rows. Pointers refer to whole arrays; null means absent or not
// wanted.
struct LinearForward {
  PackedMatrix b;             // w^T
  const PackedBf16* half;     // the same matrix if oneDNN computes the product in bf16
  Elements x;                 // [R, K]
  const float *gamma, *beta;  // layer norm before the product
  float eps;
  float *mean, *rstd;
  const float* bias;  // [N rounded up to a multiple of 16]
  LinearCall::After after;
  Gelu gelu;
  Elements slope;
  const float *skip, *gate;  // gate: [N] or null
  const float* row_scale;
  std::int64_t rows_per_sample;
  Elements y;  // [R, N]
};

// The arguments of the backward kernel for a block of rows. Pointers refer to whole arrays; null means absent or not
// wanted.
struct LinearBackward {
  PackedMatrix b;  // w, with each row multiplied by the gate
  const PackedBf16* half;
  std::int64_t rows, block_rows;
  bool want_dx;    // dx, or the gradients of the norm before it
  Elements dy;     // [R, N]
  Elements slope;  // [R, N]
  Elements du;     // [R, N]: dy slope (rounded for bf16); may be dy itself; null: kept for one block only
  float* db;       // [blocks, N]: the sum of each block of rows
  Elements x;      // [R, K]
  const float *gamma, *beta, *mean, *rstd;
  Elements operand;  // [R, K]: dw's operand: the recomputed layer norm, or x rounded; null: like du
  float* dw;         // [.., N, K]: sums of `blocks_a_sum` blocks each; null: product_over_rows() computes dw
  std::int64_t blocks_a_sum;
  Elements dx;  // [R, K]
  bool add_to_dx;
  float *dgamma, *dbeta;  // [blocks, K]
};

// The f32 elements of an array, or null if it is undefined.
inline const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
inline float* out(const Out& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

// Returns the gate with one factor for each of N outputs; undefined if there is no gate.
inline Array per_output(const Array& gate, std::int64_t N) {
  if (!gate.defined() || gate.numel() == N) return gate;
  Array all = empty_like(gate, {N});
  std::fill_n(Out(all).mutable_data<float>(), N, *gate.data<float>());
  return all;
}

// Returns the number of rows per block for passes without partial sums, and for products by oneDNN: twice
// partial_rows(), if that leaves eight blocks. Larger blocks are faster, because each block reads the panels again, and
// because one call of oneDNN costs as much as about ten rows.
inline std::int64_t more_rows(std::int64_t R) {
  const std::int64_t rows = partial_rows(R);
  return R > 15 * rows ? 2 * rows : rows;
}

// Runs the parts of a product with parallel_for(). Products of fewer than small_product operations stay on the calling
// thread.
template <class F>
void each_part(std::int64_t n, std::int64_t grain, std::int64_t operations, F&& f) {
  parallel_for(n, grain, std::forward<F>(f), operations < small_product ? n + 1 : 2);
}

// Whether oneDNN computes the products of this call, in bf16.
inline bool by_onednn(const LinearCall& call) {
  return call.products == Precision::bf16 && bf16_products().faster_than_f32;
}

}  // namespace plumb::cpu
