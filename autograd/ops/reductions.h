// Reductions over axes, and ops along one axis: cumulative sums, sorting, and positions of extremes.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- over axes (reduce.cpp)
// With keep_axes, reduced axes stay in the result with extent 1.

// A list of axes; {} means all axes. A single number also converts: sum(x, -1) is sum(x, {-1}).
class Axes : public std::vector<int> {
 public:
  using std::vector<int>::vector;
  Axes(int axis) : std::vector<int>{axis} {}  // NOLINT(google-explicit-constructor): one axis stands for a list of one
};

// The sum, or the mean, over the axes. mean() throws Error if there is no element.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// The product over the axes; 1 for no elements. Derivatives are exact even next to zeros.
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// The largest, or the smallest, element over the axes. Equal extremes share the gradient. Throws
// Error if there is no element.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// Variance in two passes: the sum of squared distances from the mean, divided by n - correction. A correction of 0 is
// NumPy's default, which norms use too. A correction of 1, PyTorch's default, gives the unbiased estimate. Throws Error
// unless correction < n.
Tensor var(const Tensor& x, const Axes& axes = {}, bool keep_axes = false, double correction = 0);
// Standard deviation: sqrt(var(..)) with the same default correction; if the deviation is 0, its derivative is 0. (The
// function is not called `std`, which is the namespace of the standard library.)
Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keep_axes = false, double correction = 0);
// Euclidean norm: the square root of the sum of squares. If the norm is 0, its derivative is 0.
Tensor norm(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// log(sum(exp(x))), computed without overflow. If all elements are -infinity, the result is
// -infinity and its derivatives are 0.
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// Whether any element, or every element, is not 0; NaN counts as not 0. x has any dtype; the result is a mask u8. For
// no elements, any is 0 and all is 1.
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// Sums x to `shape`: undoes a broadcast from `shape` to the shape of x.
Tensor sum_to(const Tensor& x, const Shape& shape);
// Repeats x along axes of extent 1 and new leading axes, so that the result has this shape.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

// ---- along an axis (order.cpp, along_axis.cpp)

// Cumulative sum along the axis: y[k] = x[0] + .. + x[k], added in this order.
Tensor cumsum(const Tensor& x, int axis);

// The result of sorting a floating x. NaN counts as larger than any number; equal elements keep the order of their
// indices. Indices are i64 and have no gradient; values have a gradient. The indices are computed on the host, so
// sorting waits for x.
struct Ordered {
  Tensor values, indices;  // values = take_along_axis(x, indices, axis)
};
// Sorts along the axis.
Ordered sort(const Tensor& x, int axis = -1, bool descending = false);
// The k largest elements along the axis, largest first; or the k smallest, smallest first.
// 0 <= k <= extent of the axis.
Ordered topk(const Tensor& x, std::int64_t k, int axis = -1, bool largest = true);
// The indices of sort().
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);
// The index of the largest, or smallest, element along the axis: the first of equal elements, or the first NaN. The
// result is i64 and has no gradient. The function computes on the host, so it waits for x. Throws Error if the axis is
// empty.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_axis = false);
Tensor argmin(const Tensor& x, int axis = -1, bool keep_axis = false);

}  // namespace plumb
