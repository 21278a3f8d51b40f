// Reductions over axes, and ops along one axis: sums, order, and where an element is.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- over axes (reduce.cpp)
// -------------------------------------------------------------------------------------------------------- Axes of a
// tensor; {} is all. One axis may be given as a number: sum(x, -1) is sum(x, {-1}).
class Axes : public std::vector<int> {
 public:
  using std::vector<int>::vector;
  Axes(int axis) : std::vector<int>{axis} {}  // NOLINT(google-explicit-constructor): one axis is axes
};

Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor prod(const Tensor& x, const Axes& axes = {},
            bool keep_axes = false);  // 1 for no elements; derivatives are exact beside zeros too
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);  // ties share the gradient
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);  // ties share the gradient
// Mean squared distance from the mean, in two passes: the sum divided by n - correction. 0 is NumPy's default and what
// norms use, 1 is the unbiased estimate, PyTorch's default.
Tensor var(const Tensor& x, const Axes& axes = {}, bool keep_axes = false, double correction = 0);
// sqrt(var(..)), with the same default correction; derivative 0 where that is 0. (`std` is the standard library's
// namespace.)
Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keep_axes = false, double correction = 0);
Tensor norm(const Tensor& x, const Axes& axes = {},
            bool keep_axes = false);  // sqrt of the sum of squares; derivative 0 where that is 0
// log(sum(exp(x))), in which nothing overflows. -infinity where all elements are, with derivatives of 0.
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
// Whether some element, or every one, is not 0; NaN is not 0. x of any dtype, the result a mask u8. For no elements:
// any 0, all 1.
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor sum_to(const Tensor& x, const Shape& shape);  // the sum that undoes a broadcast from `shape`
Tensor broadcast_to(const Tensor& x, const Shape& shape);

// ---- along an axis (order.cpp, cumsum.cpp)
// ------------------------------------------------------------------------------------------ y[k] = x[0] + .. + x[k]
// along the axis, added in this order
Tensor cumsum(const Tensor& x, int axis);

// Floating x. NaN counts as larger than any number; equal elements are in the order of their indices. Indices are i64,
// like labels, and have no gradient; values have one. They are found on the host, so these ops wait for x.
struct Ordered {
  Tensor values, indices;  // values = take_along_axis(x, indices, axis)
};
Ordered sort(const Tensor& x, int axis = -1, bool descending = false);
// The k largest along the axis, largest first; or the k smallest, smallest first. 0 <= k <= the axis's extent.
Ordered topk(const Tensor& x, std::int64_t k, int axis = -1, bool largest = true);
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);
// Where along the axis the largest, or smallest, element is: the first of equal ones, or the first NaN.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_axis = false);
Tensor argmin(const Tensor& x, int axis = -1, bool keep_axis = false);

}  // namespace plumb
