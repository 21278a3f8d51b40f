// 2-d convolution as matrix products over patches. cols [B, C kh kw, H' W'] holds one pixel for each pair of a filter
// element and a position of the result: the pixel that this filter element multiplies at this position. One thread
// writes one element of cols. The result is y_b = w cols_b. dw is the sum of dy_b cols_b^T over the samples, in order.
// For dx, dcols_b = w^T dy_b is computed first. Then one thread per element of dx sums the elements of dcols that
// belong to this pixel. Traffic: cols is kh kw / stride^2 times as large as x. cols is written once and read once in
// each direction.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/products.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

struct Extents {
  std::int64_t channels, height, width, kernel_height, kernel_width, out_height, out_width, stride, padding;
  __host__ __device__ std::int64_t filter() const { return channels * kernel_height * kernel_width; }
  __host__ __device__ std::int64_t places() const { return out_height * out_width; }
};

template <class T>
__global__ void to_columns(const T* x, Extents e, T* cols, std::int64_t n) {
  const std::int64_t index = thread_number();
  if (index >= n) return;
  const std::int64_t place = index % e.places(), element = index / e.places() % e.filter(),
                     b = index / e.places() / e.filter();
  const std::int64_t c = element / (e.kernel_height * e.kernel_width), ki = element / e.kernel_width % e.kernel_height,
                     kj = element % e.kernel_width;
  const std::int64_t i = place / e.out_width * e.stride + ki - e.padding,
                     j = place % e.out_width * e.stride + kj - e.padding;
  const bool inside = 0 <= i && i < e.height && 0 <= j && j < e.width;
  cols[index] = inside ? x[((b * e.channels + c) * e.height + i) * e.width + j] : T{0};
}

template <class T>
__global__ void from_columns(const T* cols, Extents e, T* dx, std::int64_t n) {
  const std::int64_t index = thread_number();
  if (index >= n) return;
  const std::int64_t j = index % e.width, i = index / e.width % e.height, c = index / e.width / e.height % e.channels,
                     b = index / e.width / e.height / e.channels;
  T sum = 0;
  for (std::int64_t ki = 0; ki < e.kernel_height; ++ki)
    for (std::int64_t kj = 0; kj < e.kernel_width; ++kj) {
      const std::int64_t down = i + e.padding - ki, right = j + e.padding - kj;
      if (down < 0 || right < 0 || down % e.stride != 0 || right % e.stride != 0) continue;
      const std::int64_t row = down / e.stride, column = right / e.stride;
      if (row >= e.out_height || column >= e.out_width) continue;
      const std::int64_t element = (c * e.kernel_height + ki) * e.kernel_width + kj;
      sum += cols[(b * e.filter() + element) * e.places() + row * e.out_width + column];
    }
  dx[index] = sum;
}

Extents extents_of(const Array& x, const Array& w, const Array& y, const Conv2dGeometry& options) {
  return {x.dim(1), x.dim(2), x.dim(3), w.dim(2), w.dim(3), y.dim(2), y.dim(3), options.stride, options.padding};
}

template <class T>
Out columns_of(const Array& x, const Extents& e) {
  const Out cols(empty_like(x, Shape{x.dim(0), e.filter(), e.places()}));
  launch_for(cols.numel(), to_columns<T>, elements<T>(x), e, elements<T>(cols), cols.numel());
  return cols;
}

}  // namespace

void conv2d_forward(const Array& x, const Array& w, const Array& b, const Conv2dGeometry& options, const Out& y) {
  dispatch_float(x.dtype(), "conv2d", [&]<class T>() {
    const Extents e = extents_of(x, w, y, options);
    const std::int64_t O = w.dim(0), K = e.filter(), P = e.places();
    const Out cols = columns_of<T>(x, e);
    multiply({.dtype = x.dtype(),
              .count = x.dim(0),
              .M = O,
              .N = P,
              .K = K,
              .transpose_a = false,
              .transpose_b = false,
              .stride_a = 0,
              .stride_b = K * P,
              .stride_y = O * P},
             w.address(), cols.address(), nullptr, y.mutable_address());
    if (b.defined()) binary(Binary::add, y, b.reshaped({O, 1, 1}), y);
  });
}

void conv2d_backward(const Array& dy, const Array& x, const Array& w, const Conv2dGeometry& options, const Out& dx,
                     const Out& dw, const Out& db) {
  dispatch_float(x.dtype(), "conv2d", [&]<class T>() {
    const Extents e = extents_of(x, w, dy, options);
    const std::int64_t B = x.dim(0), O = w.dim(0), K = e.filter(), P = e.places();
    if (db.defined()) reduce(Reduce::sum, dy.reshaped({B, O, P}), Out(db.reshaped({1, O, 1})));
    if (dw.defined()) {
      const Out cols = columns_of<T>(x, e), parts(empty_like(x, Shape{B, O, K}));
      multiply({.dtype = x.dtype(),
                .count = B,
                .M = O,
                .N = K,
                .K = P,
                .transpose_a = false,
                .transpose_b = true,
                .stride_a = O * P,
                .stride_b = K * P,
                .stride_y = O * K},
               dy.address(), cols.address(), nullptr, parts.mutable_address());
      reduce(Reduce::sum, parts, Out(dw.reshaped({1, O, K})));
    }
    if (dx.defined()) {
      const Out cols(empty_like(x, Shape{B, K, P}));
      multiply({.dtype = x.dtype(),
                .count = B,
                .M = K,
                .N = P,
                .K = O,
                .transpose_a = true,
                .transpose_b = false,
                .stride_a = 0,
                .stride_b = O * P,
                .stride_y = K * P},
               w.address(), dy.address(), nullptr, cols.mutable_address());
      launch_for(dx.numel(), from_columns<T>, elements<T>(cols), e, elements<T>(dx), dx.numel());
    }
  });
}

}  // namespace plumb::cuda
