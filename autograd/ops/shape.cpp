// Shapes and parts of tensors, composed of the primitives of movement.cpp.
#include <algorithm>
#include <numeric>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Returns for each axis of the shape whether it is in `axes`. Throws Error if an axis occurs twice.
std::vector<bool> named_axes(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<bool> named(static_cast<std::size_t>(shape.rank()));
  for (const int axis : axes) {
    const auto i = static_cast<std::size_t>(detail::checked_axis(op, shape, axis));
    check(!named[i], "[{}] expected each axis once, got axis {} twice for shape {}", op, axis, shape);
    named[i] = true;
  }
  return named;
}

// Reshapes x to [outer, extent, inner], with the axes before and after `axis` joined.
Tensor around(const Tensor& x, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.dim(i);
  return reshape(x, Shape{outer, x.dim(axis), inner});
}

// Returns a mask [rows, columns] that is 1 where holds(row, column).
Tensor mask_of(std::int64_t rows, std::int64_t columns, Device device,
               const std::function<bool(std::int64_t, std::int64_t)>& holds) {
  const Out mask(Array(Shape{rows, columns}, DType::u8, in_host_memory(device) ? device : Device::cpu));
  std::uint8_t* bit = mask.mutable_data<std::uint8_t>();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) *bit++ = holds(i, j);
  return Tensor(to_device(mask, device));
}

Tensor triangle(const char* op, const Tensor& x, const std::function<bool(std::int64_t, std::int64_t)>& kept) {
  detail::check_float(op, x);
  check(x.shape().rank() >= 2, "[{}] expected matrices [.., M, N], got {}", op, x.shape());
  if (x.numel() == 0) return x;
  return where(mask_of(x.dim(-2), x.dim(-1), x.device(), kept), x, 0);
}

}  // namespace

Tensor Tensor::operator[](std::int64_t i) const { return select(*this, 0, i); }

Tensor squeeze(const Tensor& x) {
  detail::check_defined("squeeze", x);
  std::vector<std::int64_t> dims;
  std::ranges::copy_if(x.shape(), std::back_inserter(dims), [](std::int64_t extent) { return extent != 1; });
  return reshape(x, Shape(dims));
}

Tensor squeeze(const Tensor& x, const Axes& axes) {
  detail::check_defined("squeeze", x);
  const std::vector<bool> gone = named_axes("squeeze", x.shape(), axes);
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (!gone[static_cast<std::size_t>(i)])
      dims.push_back(x.dim(i));
    else
      check(x.dim(i) == 1, "[squeeze] expected axes of extent 1, got axis {} of {}", i, x.shape());
  }
  return reshape(x, Shape(dims));
}

Tensor unsqueeze(const Tensor& x, int axis) {
  detail::check_defined("unsqueeze", x);
  const int place = detail::checked_axis("unsqueeze", x.shape().appended(1), axis);  // counts the axes of the result
  std::vector<std::int64_t> dims(x.shape().begin(), x.shape().end());
  dims.insert(dims.begin() + place, 1);
  return reshape(x, Shape(dims));
}

Tensor flatten(const Tensor& x, int first_axis, int last_axis) {
  detail::check_defined("flatten", x);
  if (x.shape().rank() == 0) return reshape(x, Shape{1});
  const int first = detail::checked_axis("flatten", x.shape(), first_axis),
            last = detail::checked_axis("flatten", x.shape(), last_axis);
  check(first <= last, "[flatten] expected the first axis before the last, got {} and {} of {}", first_axis, last_axis,
        x.shape());
  std::vector<std::int64_t> dims(x.shape().begin(), x.shape().begin() + first);
  dims.push_back(
      std::accumulate(x.shape().begin() + first, x.shape().begin() + last + 1, std::int64_t{1}, std::multiplies<>()));
  dims.insert(dims.end(), x.shape().begin() + last + 1, x.shape().end());
  return reshape(x, Shape(dims));
}

Tensor select(const Tensor& x, int axis, std::int64_t index) {
  detail::check_defined("select", x);
  axis = detail::checked_axis("select", x.shape(), axis);
  const std::int64_t extent = x.dim(axis);
  check(-extent <= index && index < extent, "[select] expected an index in -{}..{} for axis {} of {}, got {}", extent,
        extent - 1, axis, x.shape(), index);
  const std::int64_t i = index < 0 ? index + extent : index;
  return reshape(slice(x, axis, i, i + 1), x.shape().without(axis));
}

Tensors unbind(const Tensor& x, int axis) {
  detail::check_defined("unbind", x);
  axis = detail::checked_axis("unbind", x.shape(), axis);
  detail::check_parts("unbind", x.dim(axis));
  Tensors parts;
  for (std::int64_t i = 0; i < x.dim(axis); ++i) parts.push_back(select(x, axis, i));
  return parts;
}

Tensors split(const Tensor& x, std::int64_t size, int axis) {
  detail::check_defined("split", x);
  axis = detail::checked_axis("split", x.shape(), axis);
  check(size > 0, "[split] expected a size of at least 1, got {}", size);
  const std::int64_t extent = x.dim(axis);
  detail::check_parts("split", extent / size);
  Tensors parts;
  for (std::int64_t begin = 0; begin < extent; begin += std::min(size, extent - begin))
    parts.push_back(slice(x, axis, begin, begin + std::min(size, extent - begin)));
  return parts;
}

Tensors split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis) {
  detail::check_defined("split", x);
  axis = detail::checked_axis("split", x.shape(), axis);
  const bool fits = std::ranges::none_of(sizes, [](std::int64_t size) { return size < 0; });
  check(fits && extent_sum("split", sizes) == x.dim(axis),
        "[split] expected sizes of at least 0 whose sum is the {} of axis {} of {}, got {}", x.dim(axis), axis,
        x.shape(), fmt::join(sizes, ", "));
  Tensors parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(x, axis, begin, begin + size));
    begin += size;
  }
  return parts;
}

Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& repeats) {
  detail::check_defined("repeat", x);
  const auto rank = static_cast<std::size_t>(x.shape().rank());
  check(repeats.size() >= rank, "[repeat] expected a repeat count for each axis of {}, got {} counts", x.shape(),
        repeats.size());
  std::vector<std::int64_t> dims(repeats.size() - rank, 1);
  dims.insert(dims.end(), x.shape().begin(), x.shape().end());
  Tensor y = reshape(x, Shape(dims));
  for (std::size_t axis = 0; axis < repeats.size(); ++axis) {
    check(repeats[axis] >= 0, "[repeat] expected repeat counts of at least 0, got {} for axis {}", repeats[axis], axis);
    dims[axis] = extent_product("repeat", {repeats[axis], dims[axis]});
  }
  const Shape result(dims, "repeat");
  for (int axis = 0; axis < result.rank(); ++axis) {
    const std::int64_t count = repeats[static_cast<std::size_t>(axis)];
    if (count == 1) continue;
    const Tensor parts = around(y, axis);
    const std::int64_t run = parts.dim(1) * parts.dim(2);
    y = reshape(broadcast_to(reshape(parts, Shape{parts.dim(0), 1, run}), Shape({parts.dim(0), count, run}, "repeat")),
                y.shape().with(axis, result[axis], "repeat"));
  }
  return y;
}

Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis) {
  detail::check_defined("repeat_interleave", x);
  axis = detail::checked_axis("repeat_interleave", x.shape(), axis);
  check(count >= 0, "[repeat_interleave] expected a repeat count of at least 0, got {}", count);
  const Shape result =
      x.shape().with(axis, extent_product("repeat_interleave", {count, x.dim(axis)}), "repeat_interleave");
  const Tensor parts = around(x, axis);
  const std::int64_t rows = parts.dim(0) * parts.dim(1), run = parts.dim(2);
  return reshape(broadcast_to(reshape(parts, Shape{rows, 1, run}), Shape({rows, count, run}, "repeat_interleave")),
                 result);
}

Tensor flip(const Tensor& x, const Axes& axes) {
  detail::check_defined("flip", x);
  const std::vector<bool> flipped = named_axes("flip", x.shape(), axes);
  if (x.numel() == 0) return x;
  Tensor y = x.detach();
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (axes.empty() || flipped[static_cast<std::size_t>(axis)])
      y = index_select(y, axis, arange(x.dim(axis) - 1, std::int64_t{-1}, -1, x.device()));
  return record("flip", y.array(), {x}, [axes](const Tensor& dy) { return Tensors{flip(dy, axes)}; });
}

Tensor roll(const Tensor& x, std::int64_t shift, int axis) {
  detail::check_defined("roll", x);
  axis = detail::checked_axis("roll", x.shape(), axis);
  const std::int64_t extent = x.dim(axis);
  if (extent == 0) return x;
  const std::int64_t cut = (extent - shift % extent) % extent;  // the index of the first element of the result
  return concat({slice(x, axis, cut, extent), slice(x, axis, 0, cut)}, axis);
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return triangle("tril", x, [=](std::int64_t i, std::int64_t j) { return j - i <= diagonal; });
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return triangle("triu", x, [=](std::int64_t i, std::int64_t j) { return j - i >= diagonal; });
}

// Works on the square matrix that has the requested diagonal as its main diagonal. For a matrix x, the other rows and
// columns are cut off. For a vector x, rows and columns of zeros are added.
Tensor diag(const Tensor& x, std::int64_t diagonal) {
  detail::check_float("diag", x);
  check(x.shape().rank() == 1 || x.shape().rank() == 2, "[diag] expected a vector or a matrix, got {}", x.shape());
  check(-Shape::max_numel <= diagonal && diagonal <= Shape::max_numel,
        "[diag] expected a diagonal in -2^59..2^59, got {}", diagonal);
  const std::int64_t up = std::max<std::int64_t>(diagonal, 0), down = std::max<std::int64_t>(-diagonal, 0);
  const bool matrix = x.shape().rank() == 2;
  const std::int64_t n = matrix ? std::max<std::int64_t>(std::min(x.dim(0) - down, x.dim(1) - up), 0) : x.dim(0);
  const std::int64_t side = matrix ? 0 : extent_sum("diag", {n, up, down});
  const Shape result({side, side}, "diag");  // throws for a matrix that is too large, before the work begins
  const Tensor on_diagonal = mask_of(n, n, x.device(), std::equal_to<>());
  if (!matrix) return pad(where(on_diagonal, x, 0), {{down, up}, {up, down}});
  if (n == 0) return reshape(slice(slice(x, 0, 0, 0), 1, 0, 0), Shape{0});
  return sum(where(on_diagonal, slice(slice(x, 0, down, down + n), 1, up, up + n), 0), 1);
}

Tensor trace(const Tensor& x) {
  detail::check_float("trace", x);
  check(x.shape().rank() == 2, "[trace] expected a matrix, got {}", x.shape());
  return sum(diag(x));
}

Tensor clone(const Tensor& x) {
  detail::check_defined("clone", x);
  Array y = empty_like(x.array());
  kernels(y).cast(x.array(), y);
  return record("clone", y, {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

}  // namespace plumb
