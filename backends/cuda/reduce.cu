// Sum and max over any axes. If the innermost axis is reduced, one warp computes one result, and the lanes of the warp
// step through the reduced elements. Otherwise one thread computes one result for one part of the reduced elements, so
// that neighbouring threads read neighbouring elements. A second kernel then joins the parts in order. Traffic: x is
// read once.
#include "backends/cuda/index.cuh"
#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

template <Reduce op, class T>
struct Join {
  __device__ __forceinline__ static T start() { return op == Reduce::sum ? T{0} : static_cast<T>(-INFINITY); }
  __device__ __forceinline__ static T of(T a, T b) {
    if constexpr (op == Reduce::sum)
      return a + b;
    else
      return b != b || b > a ? b : a;  // keeps NaN
  }
};

// Reduces x with one warp per result. `results` maps a result to its first element in x. `reduced` gives the offsets of
// the reduced elements from this first element.
template <Reduce op, class T>
__global__ void reduce_inner(const T* x, Index<1> results, std::int64_t n, Index<1> reduced, std::int64_t count, T* y) {
  const std::int64_t row = warp_row();
  if (row >= n) return;
  x += results.at(row).of[0];
  T value = Join<op, T>::start();
  for (std::int64_t i = lane(); i < count; i += 32) value = Join<op, T>::of(value, x[reduced.at(i).of[0]]);
  for (int m = 16; m > 0; m /= 2) value = Join<op, T>::of(value, __shfl_xor_sync(~0u, value, m));
  if (lane() == 0) y[row] = value;
}

// Reduces part number blockIdx.y of the reduced elements. y is [parts, n].
template <Reduce op, class T>
__global__ void reduce_outer(const T* x, Index<1> results, std::int64_t n, Index<1> reduced, std::int64_t count,
                             std::int64_t of_part, T* y) {
  const std::int64_t i = thread_number(), first = std::int64_t{blockIdx.y} * of_part;
  if (i >= n) return;
  x += results.at(i).of[0];
  T value = Join<op, T>::start();
  for (std::int64_t k = first; k < min(count, first + of_part); ++k)
    value = Join<op, T>::of(value, x[reduced.at(k).of[0]]);
  y[blockIdx.y * n + i] = value;
}

template <Reduce op, class T>
__global__ void join_parts(const T* parts, std::int64_t count, std::int64_t n, T* y) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  T value = Join<op, T>::start();
  for (std::int64_t k = 0; k < count; ++k) value = Join<op, T>::of(value, parts[k * n + i]);
  y[i] = value;
}

template <Reduce op, class T>
void launch_reduce(const Array& x, const Out& y) {
  // The axes of x are split into axes that the result keeps and axes that are reduced.
  const Strides dense = broadcast_strides(x.shape(), x.shape());
  Shape kept, reduced;
  Strides kept_strides{}, reduced_strides{};
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const bool is_kept = y.dim(axis) == x.dim(axis);
    Shape& shape = is_kept ? kept : reduced;
    (is_kept ? kept_strides : reduced_strides)[static_cast<std::size_t>(shape.rank())] =
        dense[static_cast<std::size_t>(axis)];
    shape = shape.appended(x.dim(axis));
  }
  const Index<1> results(kept, std::array<Strides, 1>{kept_strides}),
      others(reduced, std::array<Strides, 1>{reduced_strides});
  const std::int64_t n = y.numel(), count = reduced.numel();
  if (n == 0) return;
  if (others.step(0) == 1)
    return launch_rows(n, reduce_inner<op, T>, elements<T>(x), results, n, others, count, elements<T>(y));
  const std::int64_t of_part = std::max<std::int64_t>(partial_rows, (count + 65534) / 65535),
                     parts = std::max<std::int64_t>((count + of_part - 1) / of_part, 1);
  const Out partial = parts == 1 ? y : Out(Array(Shape{parts, n}, y.dtype(), Device::cuda));
  launch(reduce_outer<op, T>, dim3{static_cast<unsigned>((n + 127) / 128), static_cast<unsigned>(parts), 1},
         dim3{128, 1, 1}, 0, elements<T>(x), results, n, others, count, of_part, elements<T>(partial));
  if (parts > 1)
    launch_for(n, join_parts<op, T>, elements<T>(static_cast<const Array&>(partial)), parts, n, elements<T>(y));
}

}  // namespace

void reduce(Reduce op, const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "reduce", [&]<class T>() {
    op == Reduce::sum ? launch_reduce<Reduce::sum, T>(x, y) : launch_reduce<Reduce::max, T>(x, y);
  });
}

}  // namespace plumb::cuda
