// DyT (Zhu et al. 2025): y = gamma tanh(alpha x) + beta, an element to a thread. Gradients of alpha, gamma and beta: sums by column (rows.cuh).
// Bytes: forward x and y; backward dy and x twice, dx.
#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void forward_kernel(const T* x, const T* alpha, const T* gamma, const T* beta, T* y, std::int64_t D, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i] = gamma[i % D] * std::tanh(*alpha * x[i]) + beta[i % D];
}

template <class T>
__global__ void backward_kernel(const T* dy, const T* x, const T* alpha, const T* gamma, T* dx, std::int64_t D, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const T t = std::tanh(*alpha * x[i]);
  dx[i] = *alpha * (gamma[i % D] * dy[i] * (1 - t * t));
}

// dalpha, dgamma, dbeta.
template <class T>
struct Columns {
  const T *dy, *x, *alpha, *gamma;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[3]) const {
    const T v = x[row * D + column], g = dy[row * D + column], t = std::tanh(*alpha * v);
    sums[0] += gamma[column] * g * (1 - t * t) * v;
    sums[1] += g * t;
    sums[2] += g;
  }
};

}  // namespace

void dyt_forward(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Out& y) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    launch_for(x.numel(), forward_kernel<T>, elements<T>(x), elements<T>(alpha), elements<T>(gamma), elements<T>(beta), elements<T>(y), gamma.numel(),
               x.numel());
  });
}

void dyt_backward(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Out& dx, const Out& dalpha, const Out& dgamma,
                  const Out& dbeta) {
  dispatch_float(x.dtype(), "dyt", [&]<class T>() {
    const std::int64_t D = gamma.numel();
    if (dx.defined())
      launch_for(x.numel(), backward_kernel<T>, elements<T>(dy), elements<T>(x), elements<T>(alpha), elements<T>(gamma), elements<T>(dx), D,
                 x.numel());
    if (dalpha.defined() || dgamma.defined() || dbeta.defined())
      sum_columns<3, T>(Columns<T>{elements<T>(dy), elements<T>(x), elements<T>(alpha), elements<T>(gamma), D}, rows_of(x), D,
                        {dalpha, dgamma, dbeta});
  });
}

}  // namespace plumb::cuda
