// Matrix products and convolutions by oneDNN; the files onednn_*.cpp alone use its headers. Row-major.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "core/bfloat16.h"
#include "core/shape.h"

namespace plumb::cpu {

// y = op(a) op(b) over the last two axes, transposed where asked: op(a) [.., M, K], op(b) [.., K, N], y [.., M, N].
// Leading axes of a and b broadcast to y's. Computed in blocks of y that depend on the shapes alone, one thread each:
// the same bits on any number of threads. At most eight threads share the work where there are few matrices, one where
// both M and N are below 64.
void product(const Shape& a_shape, const float* a, bool transpose_a, const Shape& b_shape, const float* b,
             bool transpose_b, const Shape& y_shape, float* y);

// y [M, N] = a^T b, a [K, M], b [K, N]: a weight gradient, where K is long. Computed in blocks of y, one thread each:
// as many as there are threads, or, under strict_determinism(), by the shape alone.
void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* y);

// B [K, N] in bf16, packed for products x B of blocks of `rows` rows (or fewer): B = w^T for w [N, K] if `transposed`,
// else B = w [K, N]. w is f32 and rounded on the way. Only where bf16_products() are faster than f32.
class PackedBf16 {
 public:
  PackedBf16(std::int64_t K, std::int64_t N, const float* w, bool transposed, std::int64_t rows);
  // c [n, N] = a B + bias: a [n, K], bias [N] or null, sums in f32, c f32 or bf16. On the calling thread alone; several
  // may call at once.
  void multiply(const bfloat16* a, std::int64_t n, const float* bias, float* c) const;
  void multiply(const bfloat16* a, std::int64_t n, const float* bias, bfloat16* c) const;

 private:
  std::int64_t K_, N_, rows_;
  Scratch panels_;
};

// product_over_rows of operands in bf16, sums and y in f32. Only where bf16_products() are faster than f32.
void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, const bfloat16* b, float* y);

// A 2-d convolution: x [samples, channels, height, width], w [filters, channels, kernel_height, kernel_width], bias
// [filters] or null, y [samples, filters, out_height, out_width].
struct Convolution {
  std::int64_t samples, channels, height, width, filters, kernel_height, kernel_width, stride, padding;
  std::int64_t out_height() const { return (height + 2 * padding - kernel_height) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel_width) / stride + 1; }
  bool operator==(const Convolution&) const = default;
};

// Each on the calling thread alone: callers split the samples, so the bits do not depend on the number of threads.
void convolve(const Convolution& c, const float* x, const float* w, const float* bias, float* y);
void convolve_to_data(const Convolution& c, const float* dy, const float* w, float* dx);
void convolve_to_weights(const Convolution& c, const float* x, const float* dy, float* dw);

std::string onednn_version();  // "oneDNN 2.6.3"

}  // namespace plumb::cpu
