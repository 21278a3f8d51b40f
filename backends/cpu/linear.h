// Parts of the linear layer that no instruction set touches.
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
  const float* scale;  // [K], a factor of each row of B, or null; not with `transposed`
  float* panels;       // room for packed_floats; null: w is what packing would make
  bool rounded;        // B's elements to bf16
};
inline std::int64_t packed_floats(std::int64_t K, std::int64_t N) { return K * ((N + 15) / 16 * 16); }

// B ready for products, packed if need be into memory that lives as long as this.
class Packed {
 public:
  Packed(PackedMatrix b, bool wanted);  // linear_packing_simd.cpp
  const PackedMatrix& matrix() const { return b_; }

 private:
  PackedMatrix b_;
  Scratch panels_;
};

// What one block of rows needs to know. Pointers are to the whole arrays; null: not there or not wanted.
struct LinearForward {
  PackedMatrix b;             // w^T
  const PackedBf16* half;     // the same, where the product runs in bf16 by oneDNN
  Elements x;                 // [R, K]
  const float *gamma, *beta;  // layer norm before
  float eps;
  float *mean, *rstd;
  const float* bias;  // [N up to 16]
  LinearCall::After after;
  Gelu gelu;
  Elements slope;
  const float *skip, *gate;  // gate [N] or null
  const float* row_scale;
  std::int64_t rows_per_sample;
  Elements y;  // [R, N]
};

struct LinearBackward {
  PackedMatrix b;  // w; its rows multiplied by the gate
  const PackedBf16* half;
  std::int64_t rows, block_rows;
  bool want_dx;    // or what stands before it
  Elements dy;     // [R, N]
  Elements slope;  // [R, N]
  Elements du;  // [R, N]: dy slope, rounded where the products are; dy itself where that is the same; nothing: room for
                // a block
  float* db;    // [blocks, N]: sums of each block of rows
  Elements x;   // [R, K]
  const float *gamma, *beta, *mean, *rstd;
  Elements operand;  // [R, K]: the layer norm of x made again, or x rounded; what dw is a product with; nothing: as du
  float* dw;         // [.., N, K]: sums of `blocks_a_sum` blocks each; null: dw is left to product_over_rows
  std::int64_t blocks_a_sum;
  Elements dx;  // [R, K]
  bool add_to_dx;
  float *dgamma, *dbeta;  // [blocks, K]
};

inline const float* in(const Array& a) { return a.defined() ? a.data<float>() : nullptr; }
inline float* out(const Out& a) { return a.defined() ? a.mutable_data<float>() : nullptr; }

// The gate as one factor for each of N outputs; undefined where there is none.
inline Array per_output(const Array& gate, std::int64_t N) {
  if (!gate.defined() || gate.numel() == N) return gate;
  Array all = empty_like(gate, {N});
  std::fill_n(Out(all).mutable_data<float>(), N, *gate.data<float>());
  return all;
}

// Rows a block where that costs no sums, or where oneDNN multiplies: each block reads the panels again, and a call
// costs oneDNN as much as some ten rows. Twice partial_rows, if eight blocks are left.
inline std::int64_t more_rows(std::int64_t R) {
  const std::int64_t rows = partial_rows(R);
  return R > 15 * rows ? 2 * rows : rows;
}

// parallel_for the parts of a product of so many operations; small ones stay on the calling thread.
template <class F>
void each_part(std::int64_t n, std::int64_t grain, std::int64_t operations, F&& f) {
  parallel_for(n, grain, std::forward<F>(f), operations < small_product ? n + 1 : 2);
}

inline bool by_onednn(const LinearCall& call) {
  return call.products == Precision::bf16 && bf16_products().faster_than_f32;
}

}  // namespace plumb::cpu
