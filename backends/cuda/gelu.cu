// y = gelu(x + b) and its slope, in f32, f64 or bf16, with one thread per element. Traffic: x is read once; y and the
// slope are written once.
#include "backends/cuda/gelu.cuh"

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

template <Gelu form, class T, class S>
__global__ void gelu_kernel(const T* x, const T* b, std::int64_t D, S* y, S* slope, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const ValueAndSlope<T> g = gelu<form>(b ? x[i] + b[i % D] : x[i]);
  y[i] = static_cast<S>(g.value);
  if (slope) slope[i] = static_cast<S>(g.slope);
}

template <Gelu form, class T>
__global__ void gelu_second_kernel(const T* g, const T* dy, const T* x, T* ddy, T* dx, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  ddy[i] = g[i] * gelu<form>(x[i]).slope;
  if (dx) dx[i] = g[i] * dy[i] * gelu_curvature<form>(x[i]);
}

}  // namespace

void gelu_second(Gelu form, const Array& g, const Array& dy, const Array& x, const Out& ddy, const Out& dx) {
  dispatch_float(x.dtype(), "gelu", [&]<class T>() {
    launch_for(x.numel(), form == Gelu::erf ? gelu_second_kernel<Gelu::erf, T> : gelu_second_kernel<Gelu::tanh, T>,
               elements<T>(g), elements<T>(dy), elements<T>(x), elements<T>(ddy), elements<T>(dx), x.numel());
  });
}

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  dispatch_float(x.dtype(), "gelu", [&]<class T>() {
    const auto into = [&]<class S>() {
      const auto kernel = form == Gelu::erf ? gelu_kernel<Gelu::erf, T, S> : gelu_kernel<Gelu::tanh, T, S>;
      launch_for(x.numel(), kernel, elements<T>(x), elements<T>(b), b.defined() ? b.numel() : 1, elements<S>(y),
                 elements<S>(dgelu), x.numel());
    };
    y.dtype() == DType::bf16 ? into.template operator()<bfloat16>() : into.template operator()<T>();
  });
}

}  // namespace plumb::cuda
