// Ops that move elements: shapes, parts, and elements chosen by index. These ops take any dtype, unless a comment says
// floating. The gradient of each op is another op of this file.
#pragma once

#include <span>
#include <utility>

#include "autograd/ops/reductions.h"
#include "autograd/tensor.h"

namespace plumb {

// ---- shapes (movement.cpp, shape.cpp)

// Gives x another shape; shares the buffer. Throws Error if the number of elements differs.
Tensor reshape(const Tensor& x, const Shape& shape);
// Gives x another shape; one extent may be -1, which stands for the extent that follows from the number of elements:
// reshape(x, {batch, -1}).
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
// Reorders axes: axis i of the result is axis axes[i] of x.
Tensor permute(const Tensor& x, const Axes& axes);
// Swaps two axes, by default the last two.
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
// x without its axes of extent 1; shares the buffer.
Tensor squeeze(const Tensor& x);
// x without these axes, whose extents must be 1; shares the buffer.
Tensor squeeze(const Tensor& x, const Axes& axes);
// x with a new axis of extent 1 at index `axis` of the result; shares the buffer.
Tensor unsqueeze(const Tensor& x, int axis);
// x with the axes from first_axis to last_axis joined into one; shares the buffer. A scalar becomes [1].
Tensor flatten(const Tensor& x, int first_axis = 0, int last_axis = -1);

// ---- joining and splitting (movement.cpp, shape.cpp)

// Joins tensors along an axis; their other extents must be equal.
Tensor concat(const Tensors& parts, int axis);
inline Tensor cat(const Tensors& parts, int axis = 0) { return concat(parts, axis); }
// Joins tensors of one shape along a new axis, at index `axis` of the result.
Tensor stack(const Tensors& parts, int axis = 0);
// x[.., i, ..] for each index i of the axis: the inverse of stack().
Tensors unbind(const Tensor& x, int axis = 0);
// `count` slices of equal extent along the axis. Throws Error if `count` does not divide the extent.
Tensors chunk(const Tensor& x, std::int64_t count, int axis);
// Slices of extent `size` along the axis; the last slice may be smaller.
Tensors split(const Tensor& x, std::int64_t size, int axis = 0);
// Slices of these extents along the axis. Throws Error if their sum is not the extent of the axis.
Tensors split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis = 0);
// The part of x with indices begin to end - 1 along the axis: x[.., begin:end, ..].
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);
// x[.., index, ..], without the axis. A negative index counts from the end. x[i] is short for axis 0.
Tensor select(const Tensor& x, int axis, std::int64_t index);
// x surrounded by `value`: widths (before, after) for each axis, as in np.pad. Example: pad(x, {{0, 0}, {1, 1}}).
Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value = 0);
// x repeated repeats[i] times along axis i (torch.Tensor.repeat, np.tile). If there are more repeats than axes, x gets
// new axes in front.
Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats);
// Each x[.., i, ..] repeated `count` times in a row along the axis.
Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis);
// x in reverse order along each of the axes; {} means all axes.
Tensor flip(const Tensor& x, const Axes& axes = {});
// Shifts x along the axis: x[i] moves to index i + shift. An element that passes the end continues at the start.
Tensor roll(const Tensor& x, std::int64_t shift, int axis);
// Copies a floating x [.., M, N], with 0 above (tril) or below (triu) a diagonal, which starts at column `diagonal`. A
// negative `diagonal` starts at row -diagonal.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
// For a vector [N], the matrix with the vector on the given diagonal and 0 elsewhere. For a matrix, the vector of its
// given diagonal. x must be floating.
Tensor diag(const Tensor& x, std::int64_t diagonal = 0);
// The sum of the diagonal of a matrix.
Tensor trace(const Tensor& x);
// A copy of x in a new buffer; gradients flow through the copy.
Tensor clone(const Tensor& x);

// ---- elements chosen by index (movement.cpp, along_axis.cpp)
// Indices are i64 in 0 .. extent - 1 and constants. An index out of range throws Error on the host. On cuda, a check
// would have to wait for the indices. Therefore, on cuda, the element becomes NaN (-1 for integers) or is not added;
// only anomaly mode (autograd/debug.h) throws Error. Indices may repeat: gradients are added in the order of the
// indices, so that results are the same in every run.

// The rows of x [V, ..] at index [..] -> [index.., ..].
Tensor gather(const Tensor& x, const Tensor& index);
// The elements of x at `index` along the axis: x[.., index, ..]. index has any number of axes, which replace `axis`.
Tensor index_select(const Tensor& x, int axis, const Tensor& index);
// The rows of weight [V, D] at index [..] -> [.., D]. weight must be floating.
Tensor embedding(const Tensor& index, const Tensor& weight);
// y[.., k, ..] = x[.., index[.., k, ..], ..] along the axis (np.take_along_axis, torch.gather). index has the extents
// of x, except along the axis.
Tensor take_along_axis(const Tensor& x, const Tensor& index, int axis);
// x with source[.., k, ..] added at position index[.., k, ..] of the axis, in the order of k. index and source have the
// same shape: that of x, except along the axis. x must be floating.
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

}  // namespace plumb
