// Parts of the linear layer that no instruction set touches.
#pragma once

#include <algorithm>

#include "core/backend.h"

namespace plumb::cpu {

// A matrix B [K, N] for products x B, packed by panels-inl.h.
struct PackedMatrix {
  std::int64_t K, N;
  const float* w;  // [N, K] if transposed (B = w^T), else [K, N]
  bool transposed;
  const float* scale;  // [K], a factor of each row of B, or null; not with `transposed`
  float* panels;       // room for packed_floats
};
inline std::int64_t packed_floats(std::int64_t K, std::int64_t N) { return K * ((N + 15) / 16 * 16); }

// What one block of rows needs to know. Pointers are to the whole arrays; null: not there or not wanted.
struct LinearForward {
  PackedMatrix b;             // w^T
  const float* x;             // [R, K]
  const float *gamma, *beta;  // layer norm before
  float eps;
  float *mean, *rstd;
  const float* bias;  // [N up to 16]
  LinearCall::After after;
  Gelu gelu;
  float* slope;
  const float *skip, *gate;  // gate [N] or null
  float factor;              // a gate of one element
  const float* row_scale;
  std::int64_t rows_per_sample;
  float* y;  // [R, N]
};

struct LinearBackward {
  PackedMatrix b;      // w; its rows multiplied by the gate
  bool want_dx;        // or what stands before it
  const float* dy;     // [R, N]
  const float* slope;  // [R, N]
  float* du;           // [R, N]: dy slope
  float* db;           // [blocks, N]: sums of each block of rows
  const float* x;      // [R, K]
  const float *gamma, *beta, *mean, *rstd;
  float* normed;  // [R, K]: the layer norm of x made again
  float* dx;      // [R, K]
  bool add_to_dx;
  float *dgamma, *dbeta;  // [blocks, K]
};

}  // namespace plumb::cpu
