// Primitives that move elements. The gradient of each primitive is another primitive of this file.
#include <algorithm>
#include <numeric>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Returns a tensor whose slice [.., begin : begin + length, ..] is `part` and whose other elements are `value`.
Tensor embed(const Tensor& part, const Shape& shape, int axis, std::int64_t begin, double value = 0) {
  Array y = full_like(part.array(), shape, value);
  kernels(y).assign_slice(part.array(), axis, begin, y);
  return record("embed", y, {part}, [axis, begin, length = part.dim(axis)](const Tensor& dy) {
    return Tensors{slice(dy, axis, begin, begin + length)};
  });
}

Tensor rows_at(const Tensor& x, const Tensor& index);

// Returns zeros of this shape to which row i.. is added at index[i..].
Tensor scatter(const Tensor& rows, const Tensor& index, const Shape& shape) {
  Array y = full_like(rows.array(), shape, 0);
  kernels(y).scatter_add(rows.array(), index.array(), y);
  return record("scatter", y, {rows}, [index = Saved(index)](const Tensor& dy) { return Tensors{rows_at(dy, index)}; });
}

Tensor rows_at(const Tensor& x, const Tensor& index) {
  std::vector<std::int64_t> dims(index.shape().begin(), index.shape().end());
  dims.insert(dims.end(), x.shape().begin() + 1, x.shape().end());
  Array y = empty_like(x.array(), Shape(dims, "gather"));
  kernels(y).gather(x.array(), index.array(), y);
  return record("gather", y, {x}, [shape = x.shape(), index = Saved(index)](const Tensor& dy) {
    return Tensors{scatter(dy, index, shape)};
  });
}

}  // namespace

void detail::check_indices(const char* op, const Tensor& x, int axis, const Tensor& index) {
  check_defined(op, index);
  check(index.device() == x.device(), "[{}] expected indices on {} like the elements, got indices on {}", op,
        enum_name(x.device()), enum_name(index.device()));
  check(index.dtype() == DType::i64, "[{}] expected i64 indices, got {} {}", op, enum_name(index.dtype()),
        index.shape());
  const Array host = numbers_to_check(index.array());
  for (std::int64_t i = 0; i < (host.defined() ? host.numel() : 0); ++i) {
    const std::int64_t k = host.data<std::int64_t>()[i];
    check(0 <= k && k < x.dim(axis), "[{}] expected indices in 0..{} for axis {} of {}, got {} at {}", op,
          x.dim(axis) - 1, axis, x.shape(), k, i);
  }
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  detail::check_defined("reshape", x);
  check(x.numel() == shape.numel(), "[reshape] expected a shape of {} elements like {}, got {}", x.numel(), x.shape(),
        shape);
  if (x.shape() == shape) return x;
  return record("reshape", x.array().reshaped(shape), {x},
                [from = x.shape()](const Tensor& dy) { return Tensors{reshape(dy, from)}; });
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents) {
  detail::check_defined("reshape", x);
  for (const std::int64_t extent : extents)
    check(extent >= -1, "[reshape] expected extents of at least 0, or one of -1, got [{}]", fmt::join(extents, ", "));
  const auto open = std::ranges::find(extents, -1);
  if (open == extents.end()) return reshape(x, Shape(extents));
  std::vector<std::int64_t> dims(extents);
  dims[static_cast<std::size_t>(open - extents.begin())] = 1;
  check(std::ranges::count(extents, -1) == 1, "[reshape] expected at most one extent of -1, got [{}]",
        fmt::join(extents, ", "));
  const std::int64_t others = Shape(dims, "reshape").numel();
  check(others > 0 && x.numel() % others == 0,
        "[reshape] expected extents other than -1 whose product divides the {} elements of {}, got [{}]", x.numel(),
        x.shape(), fmt::join(extents, ", "));
  dims[static_cast<std::size_t>(open - extents.begin())] = x.numel() / others;
  return reshape(x, Shape(dims));
}

void detail::check_parts(const char* op, std::int64_t count) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  check(count <= most, "[{}] expected at most {} parts, got {}", op, most, count);
}

Tensor detail::as_matrix(const Tensor& x) { return reshape(x, Shape{x.shape().with(-1, 1).numel(), x.dim(-1)}); }

Tensor permute(const Tensor& x, const Axes& axes) {
  detail::check_defined("permute", x);
  const int rank = x.shape().rank();
  check(static_cast<int>(axes.size()) == rank, "[permute] expected {} axes for shape {}, got {}", rank, x.shape(),
        axes.size());
  Axes forward(axes), inverse(axes.size(), -1);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    forward[i] = detail::checked_axis("permute", x.shape(), axes[i]);
    int& back = inverse[static_cast<std::size_t>(forward[i])];
    check(back < 0, "[permute] expected each axis of {} once, got axis {} twice", x.shape(), axes[i]);
    back = static_cast<int>(i);
    dims.push_back(x.dim(forward[i]));
  }
  Array y = empty_like(x.array(), Shape(dims));
  kernels(y).permute(x.array(), forward, y);
  return record("permute", y, {x}, [inverse](const Tensor& dy) { return Tensors{permute(dy, inverse)}; });
}

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  detail::check_defined("transpose", x);
  Axes axes(static_cast<std::size_t>(x.shape().rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const auto index = [&](int axis) {
    return static_cast<std::size_t>(detail::checked_axis("transpose", x.shape(), axis));
  };
  std::swap(axes[index(axis_a)], axes[index(axis_b)]);
  return permute(x, axes);
}

Tensor concat(const Tensors& parts, int axis) {
  check(!parts.empty(), "[concat] expected at least one tensor, got none");
  detail::check_defined("concat", parts[0]);
  axis = detail::checked_axis("concat", parts[0].shape(), axis);
  std::vector<std::int64_t> extents;
  for (const Tensor& part : parts) {
    detail::check_alike("concat", parts[0], part);
    check(
        part.shape().rank() == parts[0].shape().rank() && part.shape().with(axis, 0) == parts[0].shape().with(axis, 0),
        "[concat] expected shapes that are equal except on axis {}, got {} and {}", axis, parts[0].shape(),
        part.shape());
    extents.push_back(part.dim(axis));
  }
  Array y = empty_like(parts[0].array(), parts[0].shape().with(axis, extent_sum("concat", extents), "concat"));
  std::vector<std::int64_t> begins;
  std::int64_t begin = 0;
  for (const Tensor& part : parts) {
    kernels(y).assign_slice(part.array(), axis, begin, y);
    begins.push_back(begin);
    begin += part.dim(axis);
  }
  begins.push_back(begin);
  return record("concat", y, parts, [begins, axis](const Tensor& dy) {
    Tensors gradients;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) gradients.push_back(slice(dy, axis, begins[i], begins[i + 1]));
    return gradients;
  });
}

Tensor stack(const Tensors& parts, int axis) {
  check(!parts.empty(), "[stack] expected at least one tensor, got none");
  detail::check_defined("stack", parts[0]);
  const Shape& shape = parts[0].shape();
  const int place = detail::checked_axis("stack", shape.appended(1), axis);  // counts the axes of the result
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  dims.insert(dims.begin() + place, 1);
  Tensors rows;
  for (const Tensor& part : parts) {
    detail::check_alike("stack", parts[0], part);
    check(part.shape() == shape,
          "[stack] expected tensors of one shape, got {} and {}: use concat() for shapes that differ along an axis",
          shape, part.shape());
    rows.push_back(reshape(part, Shape(dims)));
  }
  return concat(rows, place);
}

Tensors chunk(const Tensor& x, std::int64_t count, int axis) {
  detail::check_defined("chunk", x);
  axis = detail::checked_axis("chunk", x.shape(), axis);
  const std::int64_t extent = x.dim(axis);
  check(count > 0 && extent % count == 0,
        "[chunk] expected a count that divides the {} of axis {} of {}, got {}: use split() for unequal parts", extent,
        axis, x.shape(), count);
  detail::check_parts("chunk", count);
  Tensors parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back(slice(x, axis, i * (extent / count), (i + 1) * (extent / count)));
  return parts;
}

Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  detail::check_defined("slice", x);
  axis = detail::checked_axis("slice", x.shape(), axis);
  check(0 <= begin && begin <= end && end <= x.dim(axis),
        "[slice] expected 0 <= begin <= end <= {} on axis {} of {}, got {}..{}", x.dim(axis), axis, x.shape(), begin,
        end);
  if (begin == 0 && end == x.dim(axis)) return x;
  Array y = empty_like(x.array(), x.shape().with(axis, end - begin));
  kernels(y).slice(x.array(), axis, begin, y);
  return record("slice", y, {x},
                [shape = x.shape(), axis, begin](const Tensor& dy) { return Tensors{embed(dy, shape, axis, begin)}; });
}

Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths, double value) {
  detail::check_defined("pad", x);
  check(static_cast<int>(widths.size()) == x.shape().rank(),
        "[pad] expected a pair of widths for each axis of {}, got {} pairs", x.shape(), widths.size());
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const auto [before, after] = widths[static_cast<std::size_t>(axis)];
    check(before >= 0 && after >= 0,
          "[pad] expected widths of at least 0, got {} and {} for axis {}: use slice() to remove elements", before,
          after, axis);
    dims.push_back(extent_sum("pad", {before, x.dim(axis), after}));
  }
  const Shape shape(dims, "pad");
  Tensor y = x;
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (shape[axis] != x.dim(axis))
      y = embed(y, y.shape().with(axis, shape[axis]), axis, widths[static_cast<std::size_t>(axis)].first, value);
  return y;
}

Tensor gather(const Tensor& x, const Tensor& index) {
  detail::check_defined("gather", x);
  check(x.shape().rank() >= 1, "[gather] expected a tensor of at least one axis, got {}", x.shape());
  detail::check_indices("gather", x, 0, index);
  return rows_at(x, index);
}

Tensor embedding(const Tensor& index, const Tensor& weight) {
  detail::check_float("embedding", weight);
  check(weight.shape().rank() == 2, "[embedding] expected a weight [V, D], got {}", weight.shape());
  detail::check_indices("embedding", weight, 0, index);
  return rows_at(weight, index);
}

// Gathers rows of x with `axis` moved to the front, then moves the axes of `index` to the place of `axis`.
Tensor index_select(const Tensor& x, int axis, const Tensor& index) {
  detail::check_defined("index_select", x);
  axis = detail::checked_axis("index_select", x.shape(), axis);
  detail::check_indices("index_select", x, axis, index);
  if (axis == 0) return rows_at(x, index);
  const int places = index.shape().rank();
  Axes front{axis}, back;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != axis) front.push_back(i);
  for (int i = 0; i < axis; ++i) back.push_back(places + i);
  for (int i = 0; i < places; ++i) back.push_back(i);
  for (int i = axis + 1; i < x.shape().rank(); ++i) back.push_back(places + i - 1);
  return permute(rows_at(permute(x, front), index), back);
}

}  // namespace plumb
