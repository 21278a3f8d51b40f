// Ops along one axis, separately for each position on the other axes: cumulative sums, and elements chosen by index.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

Tensor cumulative(const Tensor& x, int axis, bool from_the_end) {
  Array y = empty_like(x.array());
  kernels(y).cumsum(x.array(), axis, from_the_end, y);
  return record("cumsum", y, {x},
                [axis, from_the_end](const Tensor& dy) { return Tensors{cumulative(dy, axis, !from_the_end)}; });
}

// Checks an index that must have the extents of x, except along `axis`.
void check_index_along(const char* op, const Tensor& x, int axis, const Tensor& index) {
  detail::check_indices(op, x, axis, index);
  check(index.shape().rank() == x.shape().rank() && index.shape().with(axis, 0) == x.shape().with(axis, 0),
        "[{}] expected an index with the extents of {} except on axis {}, got {}", op, x.shape(), axis, index.shape());
}

Tensor taken(const Tensor& x, const Tensor& index, int axis);

// Returns zeros of this shape to which the elements of source are added.
Tensor scattered(const Tensor& source, const Tensor& index, int axis, const Shape& shape) {
  Array y = full_like(source.array(), shape, 0);
  kernels(y).scatter_add_along(source.array(), index.array(), axis, y);
  return record("scatter_add", y, {source},
                [index = Saved(index), axis](const Tensor& dy) { return Tensors{taken(dy, index, axis)}; });
}

Tensor taken(const Tensor& x, const Tensor& index, int axis) {
  Array y = empty_like(x.array(), index.shape());
  kernels(y).take_along(x.array(), index.array(), axis, y);
  return record("take_along_axis", y, {x}, [shape = x.shape(), index = Saved(index), axis](const Tensor& dy) {
    return Tensors{scattered(dy, index, axis, shape)};
  });
}

}  // namespace

Tensor cumsum(const Tensor& x, int axis) {
  detail::check_float("cumsum", x);
  return cumulative(x, detail::checked_axis("cumsum", x.shape(), axis), false);
}

Tensor take_along_axis(const Tensor& x, const Tensor& index, int axis) {
  detail::check_defined("take_along_axis", x);
  axis = detail::checked_axis("take_along_axis", x.shape(), axis);
  check_index_along("take_along_axis", x, axis, index);
  return taken(x, index, axis);
}

Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  detail::check_operands("scatter_add", x, source);
  axis = detail::checked_axis("scatter_add", x.shape(), axis);
  check_index_along("scatter_add", x, axis, index);
  check(source.shape() == index.shape(), "[scatter_add] expected a source of the index's shape {}, got {}",
        index.shape(), source.shape());
  const Tensor y = clone(x.detach());
  kernels(y.array()).scatter_add_along(source.array(), index.array(), axis, Out(y.array()));
  return record("scatter_add", y.array(), {x, source}, [index = Saved(index), axis](const Tensor& dy) {
    return Tensors{dy, taken(dy, index, axis)};
  });
}

}  // namespace plumb
