// Kernels that work along one axis.
//   cumsum, scatter_add_along: one thread for each position on the other axes. The thread walks along the axis in
//     order. Therefore elements with the same index are added in the same order in each run.
//   take_along: one thread moves one element.
// Unless the axis is the last one, neighbouring threads access neighbouring elements. Traffic: each element is read
// once and written once. scatter_add_along also reads and writes one element of the result for each index.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

// The numbers of positions on the axes before `axis` (outer) and after `axis` (inner).
struct Around {
  std::int64_t outer = 1, inner = 1;
  Around(const Array& a, int axis) {
    for (int i = 0; i < axis; ++i) outer *= a.dim(i);
    for (int i = axis + 1; i < a.shape().rank(); ++i) inner *= a.dim(i);
  }
};

template <class T>
__global__ void cumsum_kernel(const T* x, std::int64_t extent, std::int64_t inner, bool from_the_end, T* y,
                              std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const std::int64_t row = i / inner * extent * inner + i % inner;
  double sum = 0;
  for (std::int64_t k = 0; k < extent; ++k) {
    const std::int64_t at = row + (from_the_end ? extent - 1 - k : k) * inner;
    y[at] = static_cast<T>(sum += static_cast<double>(x[at]));
  }
}

// If an index is out of range, nothing is read. All bits of the element are then set, which is NaN, -1 or 255.
template <class T>
__global__ void take_along_kernel(const T* x, std::int64_t x_extent, const std::int64_t* index, std::int64_t extent,
                                  std::int64_t inner, T* y, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const std::int64_t k = index[i];
  T nothing;
  memset(&nothing, 0xff, sizeof(T));
  y[i] = 0 <= k && k < x_extent ? x[(i / (extent * inner) * x_extent + k) * inner + i % inner] : nothing;
}

template <class T>
__global__ void scatter_add_along_kernel(const T* x, const std::int64_t* index, std::int64_t extent, std::int64_t inner,
                                         T* y, std::int64_t y_extent, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const std::int64_t from = i / inner * extent * inner + i % inner, to = i / inner * y_extent * inner + i % inner;
  for (std::int64_t k = 0; k < extent; ++k) {
    const std::int64_t at = index[from + k * inner];
    if (0 <= at && at < y_extent) y[to + at * inner] += x[from + k * inner];
  }
}

}  // namespace

void cumsum(const Array& x, int axis, bool from_the_end, const Out& y) {
  const Around around(x, axis);
  dispatch_float(x.dtype(), "cumsum", [&]<class T>() {
    const std::int64_t n = around.outer * around.inner;
    launch_for(n, cumsum_kernel<T>, elements<T>(x), x.dim(axis), around.inner, from_the_end, elements<T>(y), n);
  });
}

void take_along(const Array& x, const Array& index, int axis, const Out& y) {
  const Around around(x, axis);
  const auto run = [&]<class T>() {
    launch_for(y.numel(), take_along_kernel<T>, static_cast<const T*>(x.address()), x.dim(axis),
               elements<std::int64_t>(index), y.dim(axis), around.inner, static_cast<T*>(y.mutable_address()),
               y.numel());
  };
  if (y.numel() == 0) return;
  count_bytes(2 * static_cast<std::int64_t>(y.size_in_bytes()));
  switch (size_of(x.dtype())) {
    case 8:
      return run.template operator()<std::uint64_t>();
    case 4:
      return run.template operator()<std::uint32_t>();
    case 2:
      return run.template operator()<std::uint16_t>();
    default:
      return run.template operator()<std::uint8_t>();
  }
}

void scatter_add_along(const Array& x, const Array& index, int axis, const Out& y) {
  const Around around(x, axis);
  dispatch_float(x.dtype(), "scatter_add_along", [&]<class T>() {
    const std::int64_t n = around.outer * around.inner;
    launch_for(x.numel() > 0 ? n : 0, scatter_add_along_kernel<T>, elements<T>(x), elements<std::int64_t>(index),
               x.dim(axis), around.inner, in_place<T>(y), y.dim(axis), n);
  });
}

}  // namespace plumb::cuda
