// The residual junction y = skip + row_scale[sample] gate branch, with one thread per element. If the gate's gradient
// is wanted, the backward pass instead uses one thread per column and group of rows (rows.cuh). Traffic: the forward
// pass reads skip and branch and writes y. The backward pass reads dy, reads branch if the gate's gradient is wanted,
// and writes dbranch.
#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

// The factor of branch at element i: gate times row scale. A null pointer stands for a factor of 1.
template <class T>
struct Factor {
  const T *gate, *scale;
  // gates: elements of the gate; per_gate: consecutive elements with one element of the gate; per_sample: elements of
  // one sample
  std::int64_t gates, per_gate, per_sample;
  __device__ __forceinline__ T sample(std::int64_t i) const { return scale ? scale[i / per_sample] : T{1}; }
  __device__ __forceinline__ T at(std::int64_t i) const {
    return gate ? sample(i) * gate[gates == 1 ? 0 : i / per_gate % gates] : sample(i);
  }
};

template <class T>
__global__ void forward_kernel(const T* skip, const T* branch, Factor<T> factor, T* y, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i] = skip[i] + factor.at(i) * branch[i];
}

template <class T>
__global__ void backward_kernel(const T* dy, Factor<T> factor, T* dbranch, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) dbranch[i] = factor.at(i) * dy[i];
}

// Writes one element of dbranch, unless dbranch is null. Adds the element's share to the sum dgate.
template <class T>
struct Backward {
  const T *dy, *branch;
  Factor<T> factor;
  T* dbranch;
  std::int64_t D;
  __device__ __forceinline__ void operator()(std::int64_t row, std::int64_t column, T (&sums)[1]) const {
    const std::int64_t i = row * D + column;
    if (dbranch) dbranch[i] = factor.at(i) * dy[i];
    sums[0] += factor.sample(i) * dy[i] * branch[i];
  }
};

// Writes the sum of each row of x [rows, D], with one warp per row.
template <class T>
__global__ void row_sums_kernel(const T* x, std::int64_t rows, std::int64_t D, T* y) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  T sum = 0;
  for (std::int64_t i = lane(); i < D; i += 32) sum += x[row * D + i];
  sum = warp_sum(sum);
  if (lane() == 0) y[row] = sum;
}

template <class T>
Factor<T> factor_of(const Array& like, const Array& gate, const Array& row_scale) {
  return {gate.defined() ? elements<T>(gate) : nullptr, row_scale.defined() ? elements<T>(row_scale) : nullptr,
          gate.defined() ? gate.numel() : 1, std::max<std::int64_t>(elements_per_gate(gate, like.shape()), 1),
          row_scale.defined() && row_scale.numel() > 0 ? like.numel() / row_scale.numel() : 1};
}

}  // namespace

void gated_residual_forward(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale,
                            const Out& y) {
  dispatch_float(y.dtype(), "gated_residual", [&]<class T>() {
    launch_for(y.numel(), forward_kernel<T>, elements<T>(skip), elements<T>(branch), factor_of<T>(y, gate, row_scale),
               elements<T>(y), y.numel());
  });
}

void gated_residual_backward(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale,
                             const Out& dbranch, const Out& dgate) {
  if (dy.numel() == 0) {  // a row of no sample may have any width
    if (dgate.defined()) fill(0, dgate);
    return;
  }
  dispatch_float(dy.dtype(), "gated_residual", [&]<class T>() {
    const Factor<T> factor = factor_of<T>(dy, gate, row_scale);
    if (dgate.defined() && dgate.shape().rank() > 1) {  // channels before other axes: sums over samples, then over rows
      const std::int64_t columns = dgate.numel() * factor.per_gate, rows = columns > 0 ? dy.numel() / columns : 0;
      const Out of_column(Array(Shape{dgate.numel(), factor.per_gate}, dy.dtype(), Device::cuda));
      sum_columns<1, T>(Backward<T>{elements<T>(dy), elements<T>(branch), factor, elements<T>(dbranch), columns}, rows,
                        columns, {of_column});
      launch_rows(dgate.numel(), row_sums_kernel<T>, pointer<T>(of_column), dgate.numel(), factor.per_gate,
                  elements<T>(dgate));
    } else if (dgate.defined())
      sum_columns<1, T>(Backward<T>{elements<T>(dy), elements<T>(branch), factor, elements<T>(dbranch), dy.dim(-1)},
                        rows_of(dy), dy.dim(-1), {dgate});
    else if (dbranch.defined())
      launch_for(dy.numel(), backward_kernel<T>, elements<T>(dy), factor, elements<T>(dbranch), dy.numel());
  });
}

}  // namespace plumb::cuda
