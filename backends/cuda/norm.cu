// Layer norm and RMS norm over the last axis: a warp to a row, which it reads two or three times (the later times from the cache); the variance by a
// second pass. Gradients of gamma and beta: sums by column (rows.cuh).
// Bytes: forward x and y; backward dy and x twice, dx.
#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

// With beta and mean: layer norm. Without (null): RMS norm.
template <class T>
__global__ void norm_forward_kernel(const T* x, const T* gamma, const T* beta, T eps, T* y, T* mean, T* rstd, std::int64_t rows, std::int64_t D) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * D, y += row * D;
  T m = 0, squares = 0;
  if (mean) {
    for (std::int64_t i = lane(); i < D; i += 32) m += x[i];
    m = warp_sum(m) / static_cast<T>(D);
  }
  for (std::int64_t i = lane(); i < D; i += 32) squares += (x[i] - m) * (x[i] - m);
  const T s = 1 / std::sqrt(warp_sum(squares) / static_cast<T>(D) + eps);
  for (std::int64_t i = lane(); i < D; i += 32) y[i] = gamma[i] * ((x[i] - m) * s) + (beta ? beta[i] : T{0});
  if (lane() == 0) {
    rstd[row] = s;
    if (mean) mean[row] = m;
  }
}

template <class T>
__global__ void norm_backward_kernel(const T* dy, const T* x, const T* gamma, const T* mean, const T* rstd, T* dx, std::int64_t rows,
                                     std::int64_t D) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  dy += row * D, x += row * D, dx += row * D;
  const T m = mean ? mean[row] : T{0}, s = rstd[row];
  T mean_u = 0, mean_uh = 0;
  for (std::int64_t i = lane(); i < D; i += 32) {
    const T u = gamma[i] * dy[i];
    mean_u += u, mean_uh += u * ((x[i] - m) * s);
  }
  mean_u = mean ? warp_sum(mean_u) / static_cast<T>(D) : T{0};
  mean_uh = warp_sum(mean_uh) / static_cast<T>(D);
  for (std::int64_t i = lane(); i < D; i += 32) dx[i] = s * (gamma[i] * dy[i] - mean_u - (x[i] - m) * s * mean_uh);
}

// dgamma and dbeta.
template <class T>
struct NormColumns {
  const T *dy, *x, *mean, *rstd;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[2]) const {
    const T g = dy[row * D + column];
    sums[0] += g * ((x[row * D + column] - (mean ? mean[row] : T{0})) * rstd[row]);
    sums[1] += g;
  }
};

template <class T>
const T* optional(const Array& a) {
  return a.defined() ? elements<T>(a) : nullptr;
}

template <class T>
void backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Out& dx, const Out& dgamma,
              const Out& dbeta) {
  const std::int64_t rows = rows_of(x), D = x.dim(-1);
  if (dx.defined())
    launch_rows(rows, norm_backward_kernel<T>, elements<T>(dy), elements<T>(x), elements<T>(gamma), optional<T>(mean), elements<T>(rstd),
                elements<T>(dx), rows, D);
  if (dgamma.defined() || dbeta.defined())
    sum_columns<2, T>(NormColumns<T>{elements<T>(dy), elements<T>(x), optional<T>(mean), elements<T>(rstd), D}, rows, D, {dgamma, dbeta});
}

}  // namespace

void layer_norm_forward(const Array& x, const Array& gamma, const Array& beta, double eps, const Out& y, const Out& mean, const Out& rstd) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() {
    launch_rows(rows_of(x), norm_forward_kernel<T>, elements<T>(x), elements<T>(gamma), elements<T>(beta), static_cast<T>(eps), elements<T>(y),
                elements<T>(mean), elements<T>(rstd), rows_of(x), x.dim(-1));
  });
}

void layer_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Out& dx, const Out& dgamma,
                         const Out& dbeta) {
  dispatch_float(x.dtype(), "layer_norm", [&]<class T>() { backward<T>(dy, x, gamma, mean, rstd, dx, dgamma, dbeta); });
}

void rms_norm_forward(const Array& x, const Array& gamma, double eps, const Out& y, const Out& rstd) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() {
    launch_rows(rows_of(x), norm_forward_kernel<T>, elements<T>(x), elements<T>(gamma), static_cast<const T*>(nullptr), static_cast<T>(eps),
                elements<T>(y), static_cast<T*>(nullptr), elements<T>(rstd), rows_of(x), x.dim(-1));
  });
}

void rms_norm_backward(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Out& dx, const Out& dgamma) {
  dispatch_float(x.dtype(), "rms_norm", [&]<class T>() { backward<T>(dy, x, gamma, Array(), rstd, dx, dgamma, Out()); });
}

}  // namespace plumb::cuda
