// Matrix products and convolutions by oneDNN, on row-major arrays. Only the files onednn_*.cpp include oneDNN's
// headers.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"
#include "core/bfloat16.h"
#include "core/shape.h"

namespace plumb::cpu {

// Computes y = op(a) op(b) over the last two axes. op transposes its matrix if the transpose flag is set. The shapes
// are op(a) [.., M, K], op(b) [.., K, N] and y [.., M, N]. The leading axes of a and b broadcast to those of y. The
// work is split into blocks of y that depend only on the shapes, and one thread computes one block. Therefore the bits
// are the same for any number of threads. If there are few matrices, at most eight threads share the work. If both M
// and N are below 64, one thread computes a matrix.
void product(const Shape& a_shape, const float* a, bool transpose_a, const Shape& b_shape, const float* b,
             bool transpose_b, const Shape& y_shape, float* y);

// Computes y [M, N] = a^T b for a [K, M] and b [K, N], as for a weight gradient with large K. One thread computes one
// block of y. The number of blocks is the number of threads, so the bits depend on the number of threads. Under
// strict_determinism(), the number of blocks depends only on the shape.
void product_over_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* y);

// A matrix B [K, N] in bf16, packed for products x B with blocks of at most `rows` rows of x. If `transposed`, B = w^T
// for w [N, K]; otherwise B = w [K, N]. w is f32 and is rounded to bf16. Use this class only if bf16_products() are
// faster than f32, and if there are no amx_kernels().
class PackedBf16 {
 public:
  PackedBf16(std::int64_t K, std::int64_t N, const float* w, bool transposed, std::int64_t rows);
  // Computes c [n, N] = a B + bias on the calling thread. a is [n, K], bias is [N] or null. The sums are f32. c is f32
  // or bf16. Several threads may call multiply() at the same time.
  void multiply(const bfloat16* a, std::int64_t n, const float* bias, float* c) const;
  void multiply(const bfloat16* a, std::int64_t n, const float* bias, bfloat16* c) const;

 private:
  std::int64_t K_, N_, rows_;
  Scratch panels_;
};

// Like product_over_rows() above, for bf16 operands, with sums and y in f32. The bits do not depend on the number of
// threads. Use this function only if bf16_products() are faster than f32, and if there are no amx_kernels().
void product_over_half_rows(std::int64_t m, std::int64_t n, std::int64_t k, const bfloat16* a, const bfloat16* b,
                            float* y);

// The sizes of a 2-d convolution: x [samples, channels, height, width], w [filters, channels, kernel_height,
// kernel_width], bias [filters] or null, y [samples, filters, out_height, out_width].
struct Convolution {
  std::int64_t samples, channels, height, width, filters, kernel_height, kernel_width, stride, padding;
  std::int64_t out_height() const { return (height + 2 * padding - kernel_height) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel_width) / stride + 1; }
  bool operator==(const Convolution&) const = default;
};

// Compute y, dx and dw of a convolution on the calling thread. The callers split the samples into blocks, so that the
// bits do not depend on the number of threads.
void convolve(const Convolution& c, const float* x, const float* w, const float* bias, float* y);
void convolve_to_data(const Convolution& c, const float* dy, const float* w, float* dx);
void convolve_to_weights(const Convolution& c, const float* x, const float* dy, float* dw);

std::string onednn_version();  // returns a text such as "oneDNN 2.6.3"

}  // namespace plumb::cpu
