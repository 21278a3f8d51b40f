// Sorting along an axis. Indices are computed on the host; take_along_axis() then moves the values, and
// gradients flow back through it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"

namespace plumb {
namespace {

// Returns the first `count` indices (i64) of each row along the axis in ascending or descending order. NaN is larger
// than all numbers. If elements are equal, the smaller index comes first.
Tensor first_in_order(const char* op, const Tensor& x, int axis, std::int64_t count, bool descending) {
  std::int64_t inner = 1;  // distance of neighbours on the axis
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.dim(i);
  const std::int64_t extent = x.dim(axis), rows = x.numel() / std::max<std::int64_t>(extent, 1);
  const Array in = on_host(x.array());
  Out y(Array(x.shape().with(axis, count), DType::i64, in.device()));
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows > 0 ? extent : 0));
  dispatch_float(x.dtype(), op, [&]<class T>() {
    const auto below = [](T a, T b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
    for (std::int64_t row = 0; row < (count > 0 ? rows : 0); ++row) {
      const T* const from = in.data<T>() + row / inner * extent * inner + row % inner;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int64_t i, std::int64_t j) {
        const T a = from[(descending ? j : i) * inner], b = from[(descending ? i : j) * inner];
        return below(a, b) || (!below(b, a) && i < j);
      });
      std::int64_t* const to = y.mutable_data<std::int64_t>() + row / inner * count * inner + row % inner;
      for (std::int64_t k = 0; k < count; ++k) to[k * inner] = order[static_cast<std::size_t>(k)];
    }
  });
  return Tensor(to_device(y, x.device()));
}

}  // namespace

Tensor argsort(const Tensor& x, int axis, bool descending) {
  detail::check_float("argsort", x);
  axis = detail::checked_axis("argsort", x.shape(), axis);
  return first_in_order("argsort", x, axis, x.dim(axis), descending);
}

Ordered sort(const Tensor& x, int axis, bool descending) {
  detail::check_float("sort", x);
  axis = detail::checked_axis("sort", x.shape(), axis);
  const Tensor indices = first_in_order("sort", x, axis, x.dim(axis), descending);
  return {take_along_axis(x, indices, axis), indices};
}

Ordered topk(const Tensor& x, std::int64_t k, int axis, bool largest) {
  detail::check_float("topk", x);
  axis = detail::checked_axis("topk", x.shape(), axis);
  check(0 <= k && k <= x.dim(axis), "[topk] expected a k in 0..{} for axis {} of {}, got {}", x.dim(axis), axis,
        x.shape(), k);
  const Tensor indices = first_in_order("topk", x, axis, k, largest);
  return {take_along_axis(x, indices, axis), indices};
}

}  // namespace plumb
