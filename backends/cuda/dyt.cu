// DyT (Zhu et al. 2025): y = gamma tanh(alpha x) + beta. The forward pass uses one thread per element. The backward
// pass uses one thread per column and group of rows (rows.cuh). The thread writes dx and sums the gradients of alpha,
// gamma and beta. Traffic: the forward pass reads x and writes y. The backward pass reads dy and x and writes dx.
#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void forward_kernel(const T* x, const T* alpha, const T* gamma, const T* beta, T* y, std::int64_t D,
                               std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i] = gamma[i % D] * tanh(*alpha * x[i]) + beta[i % D];
}

// Writes one element of dx, unless dx is null. Adds the element's share to the sums dalpha, dgamma and dbeta.
template <class T>
struct Backward {
  const T *dy, *x, *alpha, *gamma;
  T* dx;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[3]) const {
    const T v = x[row * D + column], g = dy[row * D + column], t = tanh(*alpha * v),
            u = gamma[column] * g * (1 - t * t);
    if (dx) dx[row * D + column] = *alpha * u;
    sums[0] += u * v;
    sums[1] += g * t;
    sums[2] += g;
  }
};

}  // namespace

void dyt_forward(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Out& y) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    launch_for(x.numel(), forward_kernel<T>, elements<T>(x), elements<T>(alpha), elements<T>(gamma), elements<T>(beta),
               elements<T>(y), gamma.numel(), x.numel());
  });
}

void dyt_backward(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Out& dx,
                  const Out& dalpha, const Out& dgamma, const Out& dbeta) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    sum_columns<3, T>(Backward<T>{elements<T>(dy), elements<T>(x), elements<T>(alpha), elements<T>(gamma),
                                  elements<T>(dx), gamma.numel()},
                      rows_of(x), gamma.numel(), {dalpha, dgamma, dbeta});
  });
}

}  // namespace plumb::cuda
