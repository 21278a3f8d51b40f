// Matrix products by cuBLASLt.
#pragma once

#include "core/array.h"

namespace plumb::cuda {

// Of `count` pairs of row-major matrices y [M, N] = op(a) op(b), op(a) [M, K], op(b) [K, N]; a matrix follows the one
// before it after `stride_` elements, 0 where an operand is the same for all. f32 with sums in f32 (no TF32), or f64;
// or operands in bf16, and sums and y in f32.
struct Product {
  DType dtype;
  std::int64_t count, M, N, K;
  bool transpose_a, transpose_b;  // a lies as [K, M], b as [N, K]
  std::int64_t stride_a, stride_b, stride_y;
  bool bias = false;           // [N], added to each row
  bool add_to_y = false;       // y holds a sum already
  bool bf16_operands = false;  // a and b; y and bias are f32
  DType operands() const { return bf16_operands ? DType::bf16 : dtype; }

  auto operator<=>(const Product&) const = default;
};

// Addresses on the device; bias null without one, as it is where K is 0. Plans are made when a product is first asked
// for and kept.
void multiply(const Product& product, const void* a, const void* b, const void* bias, void* y);

}  // namespace plumb::cuda
