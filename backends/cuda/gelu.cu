// y = gelu(x + b) and its slope, an element to a thread. Bytes: x, y and the slope, each once.
#include "backends/cuda/gelu.cuh"

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

template <Gelu form, class T>
__global__ void gelu_kernel(const T* x, const T* b, std::int64_t D, T* y, T* slope, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const ValueAndSlope<T> g = gelu<form>(b ? x[i] + b[i % D] : x[i]);
  y[i] = g.value;
  if (slope) slope[i] = g.slope;
}

}  // namespace

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  dispatch_float(x.dtype(), "gelu", [&]<class T>() {
    const auto kernel = form == Gelu::erf ? gelu_kernel<Gelu::erf, T> : gelu_kernel<Gelu::tanh, T>;
    launch_for(x.numel(), kernel, elements<T>(x), b.defined() ? elements<T>(b) : nullptr, b.defined() ? b.numel() : 1, elements<T>(y),
               dgelu.defined() ? elements<T>(dgelu) : nullptr, x.numel());
  });
}

}  // namespace plumb::cuda
