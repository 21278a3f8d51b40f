// Parts of the linear layer that no instruction set touches.
#pragma once

#include <algorithm>

#include "backends/cpu/elements.h"
#include "backends/cpu/onednn.h"
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

}  // namespace plumb::cpu
