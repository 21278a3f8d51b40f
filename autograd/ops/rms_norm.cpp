// RMS norm (Zhang, Sennrich 2019) over the last axis: y = weight h, h = x / sqrt(mean(x^2) + eps). The gradients, with
// u = weight dy: dx = (u - h mean(u h)) / sqrt(mean(x^2) + eps), dweight = sum dy h.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  detail::check_operands("rms_norm", x, weight);
  check(x.shape().rank() >= 1 && weight.shape() == Shape{x.dim(-1)},
        "[rms_norm] expected input [.., {}] for weight {}, got {}", weight.numel(), weight.shape(), x.shape());
  detail::check_eps("rms_norm", eps);
  Array y = empty_like(x.array()), rstd = empty_like(y, x.shape().with(-1, 1));
  kernels(y).rms_norm_forward(x.array(), weight.array(), eps, y, rstd);
  return record_fused(
      "rms_norm", y, {x, weight},
      [x = Saved(x), weight = Saved(weight), rstd](const Tensor& dy) {
        Array dx = empty_like(x.array()), dweight = empty_like(weight.array());
        kernels(dx).rms_norm_backward(dy.array(), x.array(), weight.array(), rstd, dx, dweight);
        return Tensors{Tensor(dx), Tensor(dweight)};
      },
      through([eps](const Tensors& in) { return rms_norm_composed(in[0], in[1], eps); }, {x, weight}));
}

Tensor rms_norm_composed(const Tensor& x, const Tensor& weight, double eps) {
  return weight * (x * rsqrt(mean(x * x, {-1}, true) + eps));
}

}  // namespace plumb
