// softmax, log-softmax and cross-entropy over the last axis, with one warp per row. The warp reads its row two or three
// times (from the cache after the first time). The losses of the rows go to a scratch array [R]. Then one block adds
// the losses in a fixed order. Traffic: the forward pass reads x and writes y. The backward pass reads dy and y and
// writes dx. Each array is read or written once.
#include "backends/cuda/kernels.h"
#include "backends/cuda/rows.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__device__ __forceinline__ T warp_max(T x) {
  for (int m = 16; m > 0; m /= 2) {
    const T other = __shfl_xor_sync(~0u, x, m);
    x = other > x || other != other ? other : x;  // keeps NaN
  }
  return x;
}

// The largest element of a row, and the sum of the exponentials relative to the largest element. Every lane gets both
// values. The two values stay apart, because the rounding of their log-sum-exp would lose differences of large scores.
template <class T>
struct Exponentials {
  T top, sum;
};
template <class T>
__device__ __forceinline__ Exponentials<T> exponentials(const T* x, std::int64_t n) {
  T top = -INFINITY, sum = 0;
  for (std::int64_t i = lane(); i < n; i += 32) top = x[i] > top || x[i] != x[i] ? x[i] : top;
  top = warp_max(top);
  for (std::int64_t i = lane(); i < n; i += 32) sum += exp(x[i] - top);
  return {top, warp_sum(sum)};
}

template <class T>
__global__ void softmax_forward_kernel(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * n, y += row * n;
  const Exponentials<T> e = exponentials(x, n);
  for (std::int64_t i = lane(); i < n; i += 32) y[i] = exp(x[i] - e.top) / e.sum;
}

template <class T>
__global__ void softmax_backward_kernel(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  dy += row * n, y += row * n, dx += row * n;
  T dot = 0;
  for (std::int64_t i = lane(); i < n; i += 32) dot += y[i] * dy[i];
  dot = warp_sum(dot);
  for (std::int64_t i = lane(); i < n; i += 32) dx[i] = y[i] * (dy[i] - dot);
}

template <class T>
__global__ void softmax_second_kernel(const T* g, const T* dy, const T* y, T* result, std::int64_t rows,
                                      std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  g += row * n, dy += row * n, y += row * n, result += row * n;
  T dot = 0, other = 0;
  for (std::int64_t i = lane(); i < n; i += 32) dot += y[i] * dy[i], other += y[i] * g[i];
  dot = warp_sum(dot), other = warp_sum(other);
  for (std::int64_t i = lane(); i < n; i += 32) result[i] = g[i] * (dy[i] - dot) - dy[i] * other;
}

template <class T>
__global__ void log_softmax_forward_kernel(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * n, y += row * n;
  const Exponentials<T> e = exponentials(x, n);
  const T log_sum = log(e.sum);
  for (std::int64_t i = lane(); i < n; i += 32) y[i] = (x[i] - e.top) - log_sum;
}

template <class T>
__global__ void log_softmax_backward_kernel(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  dy += row * n, y += row * n, dx += row * n;
  T sum = 0;
  for (std::int64_t i = lane(); i < n; i += 32) sum += dy[i];
  sum = warp_sum(sum);
  for (std::int64_t i = lane(); i < n; i += 32) dx[i] = dy[i] - exp(y[i]) * sum;
}

// The target probabilities of each row: a smoothed label, or given probabilities.
template <class T>
struct Targets {
  const std::int64_t* labels;
  const T* given;  // [R, C], or null
  T hit, miss;     // hit: the value added for the class of the label; miss: the value of every class

  __device__ __forceinline__ T of(std::int64_t row, std::int64_t c, std::int64_t classes) const {
    return given ? given[row * classes + c] : (labels[row] == c ? hit : T{0}) + miss;
  }
  // Returns NaN for a label that is not a valid class, so that the loss becomes NaN.
  __device__ __forceinline__ T check(std::int64_t row, std::int64_t classes) const {
    return given || (0 <= labels[row] && labels[row] < classes) ? T{0} : static_cast<T>(NAN);
  }
};

template <class T>
__global__ void cross_entropy_forward_kernel(const T* x, Targets<T> targets, T* sums, T* losses, std::int64_t rows,
                                             std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * n;
  const Exponentials<T> e = exponentials(x, n);
  const T log_sum = log(e.sum);
  T loss = 0;
  for (std::int64_t c = lane(); c < n; c += 32) loss -= targets.of(row, c, n) * ((x[c] - e.top) - log_sum);
  loss = warp_sum(loss);
  if (lane() == 0) sums[2 * row] = e.top, sums[2 * row + 1] = e.sum, losses[row] = loss + targets.check(row, n);
}

template <class T>
__global__ void cross_entropy_backward_kernel(const T* dloss, const T* x, Targets<T> targets, const T* sums, T* dx,
                                              std::int64_t rows, std::int64_t n) {
  const std::int64_t row = warp_row();
  if (row >= rows) return;
  x += row * n, dx += row * n;
  T total = 0;
  for (std::int64_t c = lane(); c < n; c += 32) total += targets.of(row, c, n);
  total = warp_sum(total);
  const T scale = *dloss / static_cast<T>(rows), top = sums[2 * row], share = total / sums[2 * row + 1];
  for (std::int64_t c = lane(); c < n; c += 32) dx[c] = scale * (exp(x[c] - top) * share - targets.of(row, c, n));
}

template <class T>
Targets<T> targets_of(const Array& x, const Array& labels, const Array& target, double smoothing) {
  return {labels.defined() ? elements<std::int64_t>(labels) : nullptr, target.defined() ? elements<T>(target) : nullptr,
          static_cast<T>(1 - smoothing), static_cast<T>(smoothing / static_cast<double>(x.dim(-1)))};
}

}  // namespace

void softmax_forward(const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "softmax", [&]<class T>() {
    launch_rows(rows_of(x), softmax_forward_kernel<T>, elements<T>(x), elements<T>(y), rows_of(x), x.dim(-1));
  });
}

void softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  dispatch_float(y.dtype(), "softmax", [&]<class T>() {
    launch_rows(rows_of(y), softmax_backward_kernel<T>, elements<T>(dy), elements<T>(y), elements<T>(dx), rows_of(y),
                y.dim(-1));
  });
}

void softmax_second(const Array& g, const Array& dy, const Array& y, const Out& result) {
  dispatch_float(y.dtype(), "softmax", [&]<class T>() {
    launch_rows(rows_of(y), softmax_second_kernel<T>, elements<T>(g), elements<T>(dy), elements<T>(y),
                elements<T>(result), rows_of(y), y.dim(-1));
  });
}

void log_softmax_forward(const Array& x, const Out& y) {
  dispatch_float(x.dtype(), "log_softmax", [&]<class T>() {
    launch_rows(rows_of(x), log_softmax_forward_kernel<T>, elements<T>(x), elements<T>(y), rows_of(x), x.dim(-1));
  });
}

void log_softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  dispatch_float(y.dtype(), "log_softmax", [&]<class T>() {
    launch_rows(rows_of(y), log_softmax_backward_kernel<T>, elements<T>(dy), elements<T>(y), elements<T>(dx),
                rows_of(y), y.dim(-1));
  });
}

void cross_entropy_forward(const Array& x, const Array& labels, const Array& target, double smoothing, const Out& loss,
                           const Out& sums) {
  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>() {
    const std::int64_t rows = rows_of(x);
    const Out losses(empty_like(x, Shape{rows}));
    launch_rows(rows, cross_entropy_forward_kernel<T>, elements<T>(x), targets_of<T>(x, labels, target, smoothing),
                elements<T>(sums), elements<T>(losses), rows, x.dim(-1));
    launch_add_all<T>(elements<T>(losses), rows, 1 / static_cast<double>(rows), elements<T>(loss));
  });
}

void cross_entropy_backward(const Array& dloss, const Array& x, const Array& labels, const Array& target,
                            double smoothing, const Array& sums, const Out& dx) {
  dispatch_float(x.dtype(), "cross_entropy", [&]<class T>() {
    launch_rows(rows_of(x), cross_entropy_backward_kernel<T>, elements<T>(dloss), elements<T>(x),
                targets_of<T>(x, labels, target, smoothing), elements<T>(sums), elements<T>(dx), rows_of(x), x.dim(-1));
  });
}

}  // namespace plumb::cuda
