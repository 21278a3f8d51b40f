// permute: one thread moves one element. slice, assign_slice, gather: one thread moves one unit. A unit has the largest
// size of 16, 8, 4, 2 or 1 bytes that divides all run lengths and strides. scatter_add: one thread computes one element
// of the result and sums, in order, the rows whose index is the row of this element. Traffic: each element that moves
// is read once and written once. scatter_add reads the whole index once for each element of a row.
#include <type_traits>

#include "backends/cuda/index.cuh"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void permute_kernel(const T* x, T* y, Index<1> index, std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i] = x[index.at(i).of[0]];
}

// Copies runs of `run` units. The runs begin `from_stride` units apart in x and `to_stride` units apart in y.
template <class T>
__global__ void runs_kernel(const T* x, std::int64_t from_stride, T* y, std::int64_t to_stride, std::int64_t run,
                            std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i < n) y[i / run * to_stride + i % run] = x[i / run * from_stride + i % run];
}

// If an index is out of range, nothing is read. All bits of the row are then set, which is NaN, -1 or 255.
template <class T>
__global__ void gather_kernel(const T* x, std::int64_t rows, const std::int64_t* index, T* y, std::int64_t run,
                              std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const std::int64_t row = index[i / run];
  T nothing;
  memset(&nothing, 0xff, sizeof(T));
  y[i] = 0 <= row && row < rows ? x[row * run + i % run] : nothing;
}

template <class T>
__global__ void scatter_add_kernel(const T* x, const std::int64_t* index, std::int64_t count, T* y, std::int64_t run,
                                   std::int64_t n) {
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const std::int64_t row = i / run, column = i % run;
  T sum = y[i];
  for (std::int64_t k = 0; k < count; ++k)
    if (index[k] == row) sum += x[k * run + column];
  y[i] = sum;
}

struct alignas(16) Unit16 {
  std::uint64_t halves[2];
};

// Calls f<Unit>() with the largest unit whose size divides all these numbers of bytes.
template <class F>
void in_units(std::initializer_list<std::int64_t> bytes, F&& f) {
  std::int64_t all = 0;
  for (const std::int64_t b : bytes) all |= b;
  if (all % 16 == 0) return f.template operator()<Unit16>();
  if (all % 8 == 0) return f.template operator()<std::uint64_t>();
  if (all % 4 == 0) return f.template operator()<std::uint32_t>();
  if (all % 2 == 0) return f.template operator()<std::uint16_t>();
  f.template operator()<std::uint8_t>();
}

// Returns the bytes of one index of the axis.
std::int64_t inner_bytes(const Array& a, int axis) {
  auto bytes = static_cast<std::int64_t>(size_of(a.dtype()));
  for (int i = axis + 1; i < a.shape().rank(); ++i) bytes *= a.dim(i);
  return bytes;
}

template <class T>
const T* units(const Array& a) {
  return static_cast<const T*>(a.address());
}
template <class T>
T* units(const Out& a) {
  return static_cast<T*>(a.mutable_address());
}

// Copies `bytes` bytes in runs, from offset `from_offset` in x to offset `to_offset` in y. All sizes are in bytes.
void copy_runs(const Array& x, std::int64_t from_stride, std::int64_t from_offset, const Out& y, std::int64_t to_stride,
               std::int64_t to_offset, std::int64_t run, std::int64_t bytes) {
  if (bytes == 0) return;
  count_bytes(2 * bytes);
  in_units({from_stride, from_offset, to_stride, to_offset, run}, [&]<class T>() {
    constexpr auto unit = static_cast<std::int64_t>(sizeof(T));
    launch_for(bytes / unit, runs_kernel<T>, units<T>(x) + from_offset / unit, from_stride / unit,
               units<T>(y) + to_offset / unit, to_stride / unit, run / unit, bytes / unit);
  });
}

}  // namespace

void permute(const Array& x, std::span<const int> axes, const Out& y) {
  const Strides dense = broadcast_strides(x.shape(), x.shape());
  Strides strides{};
  for (std::size_t i = 0; i < axes.size(); ++i) strides[i] = dense[static_cast<std::size_t>(axes[i])];
  const Index<1> index(y.shape(), std::array<Strides, 1>{strides});
  count_bytes(2 * static_cast<std::int64_t>(y.size_in_bytes()));
  const auto run = [&]<class T>() {
    launch_for(y.numel(), permute_kernel<T>, units<T>(x), units<T>(y), index, y.numel());
  };
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

void slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const std::int64_t inner = inner_bytes(x, axis), run = y.dim(axis) * inner;
  copy_runs(x, x.dim(axis) * inner, start * inner, y, run, 0, run, static_cast<std::int64_t>(y.size_in_bytes()));
}

void assign_slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const std::int64_t inner = inner_bytes(y, axis), run = x.dim(axis) * inner;
  copy_runs(x, run, 0, y, y.dim(axis) * inner, start * inner, run, static_cast<std::int64_t>(x.size_in_bytes()));
}

void gather(const Array& x, const Array& index, const Out& y) {
  const std::int64_t row = inner_bytes(x, 0);
  if (y.numel() == 0) return;
  count_bytes(2 * static_cast<std::int64_t>(y.size_in_bytes()));
  in_units({row}, [&]<class T>() {
    constexpr auto unit = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t n = index.numel() * row / unit;
    launch_for(n, gather_kernel<T>, units<T>(x), x.dim(0), elements<std::int64_t>(index), units<T>(y), row / unit, n);
  });
}

void scatter_add(const Array& x, const Array& index, const Out& y) {
  dispatch_float(x.dtype(), "scatter_add", [&]<class T>() {
    const std::int64_t run = inner_bytes(y, 0) / static_cast<std::int64_t>(sizeof(T));
    launch_for(y.numel(), scatter_add_kernel<T>, elements<T>(x), elements<std::int64_t>(index), index.numel(),
               in_place<T>(y), run, y.numel());
  });
}

}  // namespace plumb::cuda
