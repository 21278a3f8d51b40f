// Reductions and their opposite, the broadcast.
#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {
namespace {

// x's shape with `axes` (all if empty) 1, or without them.
Shape reduced_shape(const char* op, const Tensor& tensor, const Axes& axes, bool keep_axes) {
  detail::check_defined(op, tensor);
  const Shape& x = tensor.shape();
  std::vector<bool> reduced(static_cast<std::size_t>(x.rank()), axes.empty());
  for (int axis : axes) {
    const auto i = static_cast<std::size_t>(x.axis(axis));
    check(!reduced[i], "[{}] expected each axis once, got axis {} twice for shape {}", op, axis, x);
    reduced[i] = true;
  }
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)])
      dims.push_back(x[i]);
    else if (keep_axes)
      dims.push_back(1);
  }
  return Shape(dims);
}

Array compute(Reduce op, const char* op_name, const Tensor& x, const Shape& kept) {
  detail::check_float(op_name, x);
  check(op != Reduce::max || x.numel() > 0, "[{}] expected at least one element, got shape {}", op_name, x.shape());
  Array y = empty_like(x.array(), kept);
  kernels(y).reduce(op, x.array(), y);
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keep_axes) {
  const Shape kept = reduced_shape("sum", x, axes, true);
  const Tensor y =
      record("sum", compute(Reduce::sum, "sum", x, kept), {x}, [shape = x.shape()](const Tensor& dy) { return Tensors{broadcast_to(dy, shape)}; });
  return keep_axes ? y : reshape(y, reduced_shape("sum", x, axes, false));
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_defined("mean", x);
  const Tensor total = sum(x, axes, keep_axes);
  return total * (static_cast<double>(total.numel()) / static_cast<double>(x.numel()));
}

Tensor max(const Tensor& x, const Axes& axes, bool keep_axes) {
  const Shape kept = reduced_shape("max", x, axes, true);
  const Array top = compute(Reduce::max, "max", x, kept);
  const Tensor y = record("max", top, {x}, [x = Saved(x), top](const Tensor& dy) {
    Array hit = empty_like(x.array());
    kernels(hit).binary(Binary::equal, x.array(), top, hit);
    const Tensor share = Tensor(hit) / sum_to(Tensor(hit), top.shape());
    return Tensors{dy * share};
  });
  return keep_axes ? y : reshape(y, reduced_shape("max", x, axes, false));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  detail::check_defined("sum_to", x);
  check(broadcasts_to(shape, x.shape()), "[sum_to] expected a shape that broadcasts to {}, got {}", x.shape(), shape);
  if (x.shape() == shape) return x;
  Shape kept = x.shape();
  for (int i = 1; i <= x.shape().rank(); ++i)
    if (i > shape.rank() || shape[-i] == 1) kept = kept.with(-i, 1);
  const Tensor y = record("sum_to", compute(Reduce::sum, "sum_to", x, kept), {x},
                          [from = x.shape()](const Tensor& dy) { return Tensors{broadcast_to(dy, from)}; });
  return reshape(y, shape);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  detail::check_defined("broadcast_to", x);
  check(broadcasts_to(x.shape(), shape), "[broadcast_to] expected a tensor that broadcasts to {}, got {}", shape, x.shape());
  if (x.shape() == shape) return x;
  Array y = empty_like(x.array(), shape);
  kernels(y).broadcast(x.array(), y);
  return record("broadcast_to", y, {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

}  // namespace plumb
