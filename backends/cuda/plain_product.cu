// A product of matrices without cuBLASLt, for products that cuBLASLt refuses. A warp computes an element of y: lane l
// adds the products l, l + 32, .., and a tree adds the sums of the lanes. Sums are in f32, or f64 for f64.
#include "backends/cuda/launch.h"
#include "backends/cuda/products.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

// The elements between neighbours in an operand: along the rows of y, along the columns of y, and along the sum.
struct Steps {
  std::int64_t row, column, sum;
};

template <class T, class S>
__global__ void product_kernel(Product p, Steps left, Steps right, const S* a, const S* b, const T* bias, T* y,
                               std::int64_t n) {
  const std::int64_t element = thread_number() / 32, lane = thread_number() % 32;
  if (element >= n) return;  // n counts warps, so that all lanes of a warp return together
  const std::int64_t matrix = element / (p.M * p.N), row = element / p.N % p.M, column = element % p.N;
  const S* const from_a = a + matrix * p.stride_a + row * left.row;
  const S* const from_b = b + matrix * p.stride_b + column * right.column;
  T sum = 0;
  for (std::int64_t k = lane; k < p.K; k += 32)
    sum += static_cast<T>(from_a[k * left.sum]) * static_cast<T>(from_b[k * right.sum]);
  sum = warp_sum(sum);
  if (lane != 0) return;
  T* const to = y + matrix * p.stride_y + row * p.N + column;
  *to = sum + (p.add_to_y ? *to : T{0}) + (p.bias ? bias[column] : T{0});
}

template <class T, class S>
void run(const Product& p, const void* a, const void* b, const void* bias, void* y) {
  const std::int64_t n = p.count * p.M * p.N;
  const Steps left{.row = p.transpose_a ? 1 : p.K, .column = 0, .sum = p.transpose_a ? p.M : 1},
      right{.row = 0, .column = p.transpose_b ? p.K : 1, .sum = p.transpose_b ? 1 : p.N};
  launch_for(32 * n, product_kernel<T, S>, p, left, right, static_cast<const S*>(a), static_cast<const S*>(b),
             static_cast<const T*>(bias), static_cast<T*>(y), n);
}

}  // namespace

void multiply_plainly(const Product& p, const void* a, const void* b, const void* bias, void* y) {
  ++counters.plain_products;
  if (p.dtype == DType::f64) return run<double, double>(p, a, b, bias, y);
  p.bf16_operands ? run<float, bfloat16>(p, a, b, bias, y) : run<float, float>(p, a, b, bias, y);
}

}  // namespace plumb::cuda
