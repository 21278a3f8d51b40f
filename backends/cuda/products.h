// Matrix products: by cuBLASLt, or by a kernel of Plumb for shapes that cuBLASLt refuses.
#pragma once

#include "core/array.h"

namespace plumb::cuda {

// `count` products of row-major matrices y [M, N] = op(a) op(b) with op(a) [M, K] and op(b) [K, N]. Each matrix of an
// operand begins `stride_a`, `stride_b` or `stride_y` elements after the previous matrix. With a stride of 0, all
// products use the same matrix. The dtype is f32 with sums in f32 (no TF32), or f64. With bf16_operands, the operands
// are bf16, and sums and y are f32.
struct Product {
  DType dtype;
  std::int64_t count, M, N, K;
  bool transpose_a, transpose_b;  // if true, a is stored as [K, M], or b as [N, K]
  std::int64_t stride_a, stride_b, stride_y;
  bool bias = false;           // if true, a bias [N] is added to each row of y
  bool add_to_y = false;       // if true, the product is added to y
  bool bf16_operands = false;  // if true, a and b are bf16, and y and bias are f32
  DType operands() const { return bf16_operands ? DType::bf16 : dtype; }

  auto operator<=>(const Product&) const = default;
};

// Computes a product. All pointers are device addresses. Unless product.bias is set, `bias` must be null. If K = 0,
// there must be no bias. The plan for a product is made at the first use of the product and kept. If cuBLASLt refuses
// the product, such as one with a single column, multiply_plainly() computes it. Throws Error if cuBLASLt fails; the
// message has the shapes, the types and the alignments.
void multiply(const Product& product, const void* a, const void* b, const void* bias, void* y);

// The same without cuBLASLt, for K > 0, at any alignment: plain_product.cu. Traffic::plain_products counts the calls.
void multiply_plainly(const Product& product, const void* a, const void* b, const void* bias, void* y);

}  // namespace plumb::cuda
