// Ops that move elements, of any dtype unless said: shapes, parts, and elements chosen by index. Each one's gradient is
// another of them.
#pragma once

#include <span>
#include <utility>

#include "autograd/ops/reductions.h"
#include "autograd/tensor.h"

namespace plumb {

// ---- shapes (movement.cpp, shape.cpp)
// ----------------------------------------------------------------------------------------------
Tensor reshape(const Tensor& x, const Shape& shape);  // shares the buffer
// The same, where one extent may be -1, which is what the others leave: reshape(x, {-1}), reshape(x, {batch, -1})
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
Tensor permute(const Tensor& x, const Axes& axes);  // axis i of the result is axis axes[i] of x
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
// These share the buffer, as reshape() does.
Tensor squeeze(const Tensor& x);                    // without its axes of extent 1
Tensor squeeze(const Tensor& x, const Axes& axes);  // without these, whose extents must be 1
Tensor unsqueeze(const Tensor& x, int axis);        // with an axis of extent 1, which is this one of the result
Tensor flatten(const Tensor& x, int first_axis = 0,
               int last_axis = -1);  // these axes and those between as one; a scalar becomes [1]

// ---- joining and parting (movement.cpp, shape.cpp)
// ----------------------------------------------------------------------------------
Tensor concat(const Tensors& parts, int axis);
inline Tensor cat(const Tensors& parts, int axis = 0) { return concat(parts, axis); }
Tensor stack(const Tensors& parts, int axis = 0);  // of one shape, along a new axis of the result
Tensors unbind(const Tensor& x, int axis = 0);     // x[.., i, ..] for each i: what stack() undoes
Tensors chunk(const Tensor& x, std::int64_t count,
              int axis);  // `count` equal slices; what does not divide is for slice()
Tensors split(const Tensor& x, std::int64_t size, int axis = 0);  // slices of this extent; the last has what is left
Tensors split(const Tensor& x, const std::vector<std::int64_t>& sizes,
              int axis = 0);  // slices of these extents, whose sum is the axis's
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);  // x[.., begin:end, ..]
Tensor select(const Tensor& x, int axis,
              std::int64_t index);  // x[.., index, ..]; a negative index counts from the end. x[i]: axis 0
// x in the middle of `value`s: widths (before, after) for each axis, as np.pad takes them. pad(x, {{0, 0}, {1, 1}})
Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value = 0);
// x beside itself, repeats[i] times along axis i (torch.Tensor.repeat, np.tile); with more repeats than axes, x gets
// new axes in front.
Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats);
Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis);  // each x[.., i, ..] `count` times in a row
Tensor flip(const Tensor& x, const Axes& axes = {});                      // in reverse order along each of them
Tensor roll(const Tensor& x, std::int64_t shift, int axis);  // x[i] goes to index i + shift, around the end
// Matrices x [.., M, N], floating: 0 above, or below, the diagonal that begins at column `diagonal` (if negative, at
// row -diagonal).
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
// Floating. Of a vector [N]: the matrix with it on that diagonal, 0 elsewhere. Of a matrix: its diagonal, a vector.
Tensor diag(const Tensor& x, std::int64_t diagonal = 0);
Tensor trace(const Tensor& x);  // sum(diag(x)) of a matrix
Tensor clone(const Tensor& x);  // the same values in a buffer of their own; the gradient passes through

// ---- elements chosen by index (movement.cpp, indexing.cpp)
// -------------------------------------------------------------------------- Indices are i64 in 0 .. extent - 1, and
// constants. One out of range is an error; on cuda, where nobody waits for indices, the element becomes NaN
// (-1 of integers), or is added nowhere, and the error comes in anomaly mode. Indices may repeat: gradients are added
// in their order, so results do not vary from run to run.
Tensor gather(const Tensor& x, const Tensor& index);  // rows of x [V, ..] at index [..]: [index.., ..]
Tensor index_select(const Tensor& x, int axis,
                    const Tensor& index);  // x[.., index, ..]: index's axes, of any number, take the place of `axis`
Tensor embedding(const Tensor& index, const Tensor& weight);  // rows of weight [V, D] at index [..]: [.., D]
// y[.., k, ..] = x[.., index[.., k, ..], ..] (np.take_along_axis, torch.gather); index has x's extents but for those
// along the axis.
Tensor take_along_axis(const Tensor& x, const Tensor& index, int axis);
// x with source[.., k, ..] added at [.., index[.., k, ..], ..], in the order of k; index and source of one shape, x's
// but for the axis. Floating.
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

}  // namespace plumb
