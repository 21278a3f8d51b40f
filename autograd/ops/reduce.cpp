// Reductions, and the broadcast, which is their inverse.
#include <cmath>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

// Returns the shape of x in which the given axes have extent 1, or are removed. Empty `axes` mean all axes.
Shape reduced_shape(const char* op, const Shape& x, const Axes& axes, bool keep_axes) {
  std::vector<bool> reduced(static_cast<std::size_t>(x.rank()), axes.empty());
  for (int axis : axes) {
    const auto i = static_cast<std::size_t>(detail::checked_axis(op, x, axis));
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

// Returns the number of elements that are reduced to one element of the result.
std::int64_t reduced_count(const char* op, const Shape& x, const Axes& axes) {
  if (axes.empty()) return x.numel();
  const Shape kept = reduced_shape(op, x, axes, true);
  std::int64_t count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (kept[i] != x[i]) count *= x[i];
  return count;
}

Array compute(Reduce op, const Tensor& x, const Shape& kept) {
  Array y = empty_like(x.array(), kept);
  kernels(y).reduce(op, x.array(), y);
  return y;
}

Tensor largest(const char* op, const Tensor& x, const Axes& axes, bool keep_axes) {
  const Shape kept = reduced_shape(op, x.shape(), axes, true);
  check(x.numel() > 0, "[{}] expected at least one element, got shape {}", op, x.shape());
  const Array top = compute(Reduce::max, x, kept);
  const Tensor y = record(op, top, {x}, [x = Saved(x)](const Tensor& dy, const Tensor& result) {
    Array hit = empty_like(x.array());
    kernels(hit).binary(Binary::equal, x.array(), result.array(), hit);
    const Tensor share = Tensor(hit) / sum_to(Tensor(hit), result.shape());
    return Tensors{dy * share};
  });
  return keep_axes ? y : reshape(y, reduced_shape(op, x.shape(), axes, false));
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("sum", x);
  const Shape kept = reduced_shape("sum", x.shape(), axes, true);
  const Tensor y = record("sum", compute(Reduce::sum, x, kept), {x},
                          [shape = x.shape()](const Tensor& dy) { return Tensors{broadcast_to(dy, shape)}; });
  return keep_axes ? y : reshape(y, reduced_shape("sum", x.shape(), axes, false));
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("mean", x);
  const double n = static_cast<double>(reduced_count("mean", x.shape(), axes));
  check(n > 0, "[mean] expected at least one element, got shape {}", x.shape());
  return sum(x, axes, keep_axes) * (1 / n);
}

Tensor max(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("max", x);
  return largest("max", x, axes, keep_axes);
}

Tensor min(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("min", x);
  return -largest("min", -x, axes, keep_axes);
}

Tensor var(const Tensor& x, const Axes& axes, bool keep_axes, double correction) {
  detail::check_float("var", x);
  const double n = static_cast<double>(reduced_count("var", x.shape(), axes));
  check(n > 0 && correction < n, "[var] expected more elements than the correction {}, got {} of shape {}", correction,
        n, x.shape());
  const Tensor distance = x - mean(x, axes, true);
  return sum(distance * distance, axes, keep_axes) * (1 / (n - correction));
}

Tensor stddev(const Tensor& x, const Axes& axes, bool keep_axes, double correction) {
  detail::check_float("stddev", x);
  const double n = static_cast<double>(reduced_count("stddev", x.shape(), axes));
  check(n > 0 && correction < n, "[stddev] expected more elements than the correction {}, got {} of shape {}",
        correction, n, x.shape());
  return norm(x - mean(x, axes, true), axes, keep_axes) * (1 / std::sqrt(n - correction));
}

// Multiplies the first half x[0 .. h) by the second half x[h .. 2 h) until one element is left. The derivatives of
// products contain no division, so zeros need no special treatment.
Tensor prod(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("prod", x);
  const Shape kept = reduced_shape("prod", x.shape(), axes, true),
              result = reduced_shape("prod", x.shape(), axes, keep_axes);
  const std::int64_t n = reduced_count("prod", x.shape(), axes);
  if (n == 0) return sum(x, axes, keep_axes) + 1;
  Axes order;  // reduced axes first
  for (int pass = 0; pass < 2; ++pass)
    for (int axis = 0; axis < x.shape().rank(); ++axis)
      if ((kept[axis] != x.dim(axis)) == (pass == 0)) order.push_back(axis);
  Tensor y = reshape(permute(x, order), Shape{n, kept.numel()});
  while (y.dim(0) > 1) {
    const std::int64_t half = y.dim(0) / 2;
    const Tensor product = slice(y, 0, 0, half) * slice(y, 0, half, 2 * half);
    y = 2 * half < y.dim(0) ? concat({product, slice(y, 0, 2 * half, y.dim(0))}, 0) : product;
  }
  return reshape(y, result);
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("logsumexp", x);
  const Shape flat = reduced_shape("logsumexp", x.shape(), axes, keep_axes);
  check(x.numel() > 0, "[logsumexp] expected at least one element, got shape {}", x.shape());
  const auto finite = [](const Tensor& v) { return where(isfinite(v), v, 0); };
  const Tensor u = x.detach(), shift = finite(max(u, axes, true));
  // The gradient is exp(x - shift) / sum exp(x - shift). The form exp(x - result) would be wrong by the rounding of the
  // result, which may exceed 1. A row of -inf has the gradient 0.
  const Tensor y = record("logsumexp", (log(sum(exp(u - shift), axes, true)) + shift).array(), {x},
                          [x = Saved(x), shift, axes](const Tensor& dy) {
                            const Tensor e = exp(x - shift), total = sum(e, axes, true);
                            return Tensors{dy * (e / where(equal(total, 0), 1, total))};
                          });
  return reshape(y, flat);
}

// A sum of ones is never rounded to 0, so counting in f32 is safe.
Tensor any(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_defined("any", x);
  const Shape flat = reduced_shape("any", x.shape(), axes, keep_axes);
  return reshape(greater(sum(cast(equal(equal(x, 0), 0), DType::f32), axes, true), 0), flat);
}

Tensor all(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_defined("all", x);
  const Shape flat = reduced_shape("all", x.shape(), axes, keep_axes);
  return reshape(equal(sum(cast(equal(x, 0), DType::f32), axes, true), 0), flat);
}

Tensor norm(const Tensor& x, const Axes& axes, bool keep_axes) {
  detail::check_float("norm", x);
  const Shape flat = reduced_shape("norm", x.shape(), axes, false);
  const Tensor u = x.detach();
  const Tensor y =
      record("norm", sqrt(sum(u * u, axes, true)).array(), {x}, [x = Saved(x)](const Tensor& dy, const Tensor& result) {
        const Tensor none = equal(result, 0);  // if x is 0, the derivatives of any order are 0
        return Tensors{where(none, zeros_like(result), dy / where(none, ones_like(result), result)) * x};
      });
  return keep_axes ? y : reshape(y, flat);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  detail::check_float("sum_to", x);
  check(broadcasts_to(shape, x.shape()), "[sum_to] expected a shape that broadcasts to {}, got {}", x.shape(), shape);
  if (x.shape() == shape) return x;
  Shape kept = x.shape();
  for (int i = 1; i <= x.shape().rank(); ++i)
    if (i > shape.rank() || shape[-i] == 1) kept = kept.with(-i, 1);
  const Tensor y = record("sum_to", compute(Reduce::sum, x, kept), {x},
                          [from = x.shape()](const Tensor& dy) { return Tensors{broadcast_to(dy, from)}; });
  return reshape(y, shape);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  detail::check_defined("broadcast_to", x);
  check(broadcasts_to(x.shape(), shape), "[broadcast_to] expected a tensor that broadcasts to {}, got {}", shape,
        x.shape());
  if (x.shape() == shape) return x;
  Array y = empty_like(x.array(), shape);
  kernels(y).broadcast(x.array(), y);
  return record("broadcast_to", y, {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

}  // namespace plumb
