// softmax = exp(x - m) / sum exp(x - m) and log_softmax = (x - m) - log sum exp(x - m), with m the largest x. Kernels
// work on the last axis.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/ops/second.h"
#include "core/backend.h"

namespace plumb {
namespace {

using Forward = void (*)(const Array&, const Out&);
using BackwardKernel = void (*)(const Array&, const Array&, const Out&);

// Applies a kernel along an axis. `differentiable` is the backward pass, written in ops that are recorded.
Tensor on_last_axis(const char* op, const Tensor& x, int axis, Forward Kernels::*forward,
                    BackwardKernel Kernels::*backward, Tensor (*differentiable)(const Tensor& dy, const Tensor& y)) {
  detail::check_float(op, x);
  const int on = detail::checked_axis(op, x.shape(), axis);
  check(x.dim(on) > 0, "[{}] expected a non-empty axis {}, got shape {}", op, axis, x.shape());
  if (on != x.shape().rank() - 1)
    return transpose(on_last_axis(op, transpose(x, axis, -1), -1, forward, backward, differentiable), axis, -1);
  Array y = empty_like(x.array());
  (kernels(y).*forward)(x.array(), y);
  return record_fused(
      op, y, {x},
      [backward](const Tensor& dy, const Tensor& result) {
        Array dx = empty_like(result.array());
        (kernels(dx).*backward)(dy.array(), result.array(), dx);
        return Tensors{Tensor(dx)};
      },
      [differentiable](const Tensor& dy, const Tensor& result) { return Tensors{differentiable(dy, result)}; });
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) {
  return on_last_axis("softmax", x, axis, &Kernels::softmax_forward, &Kernels::softmax_backward,
                      detail::softmax_backward);
}

Tensor log_softmax(const Tensor& x, int axis) {
  return on_last_axis("log_softmax", x, axis, &Kernels::log_softmax_forward, &Kernels::log_softmax_backward,
                      [](const Tensor& dy, const Tensor& y) { return dy - exp(y) * sum(dy, -1, true); });
}

Tensor detail::softmax_backward(const Tensor& dy, const Tensor& y) {
  Array dx = empty_like(y.array());
  kernels(dx).softmax_backward(dy.array(), y.array(), dx);
  return record_fused(
      "softmax_backward", dx, {dy, y},
      [dy = Saved(dy), y = Saved(y)](const Tensor& g) {
        Array ddy = empty_like(y.array()), of_y = empty_like(ddy);
        kernels(ddy).softmax_backward(g.array(), y.array(), ddy);
        kernels(ddy).softmax_second(g.array(), dy.array(), y.array(), of_y);
        return Tensors{Tensor(ddy), Tensor(of_y)};
      },
      through([](const Tensors& in) { return in[1] * (in[0] - sum(in[0] * in[1], -1, true)); }, {dy, y}));
}

// The maximum is subtracted as a constant, because the result does not depend on it.
Tensor softmax_composed(const Tensor& x) {
  const Tensor e = exp(x - max(x.detach(), {-1}, true));
  return e / sum(e, {-1}, true);
}

Tensor log_softmax_composed(const Tensor& x) {
  const Tensor shifted = x - max(x.detach(), {-1}, true);
  return shifted - log(sum(exp(shifted), {-1}, true));
}

}  // namespace plumb
