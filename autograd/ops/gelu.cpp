// GELU (Hendrycks, Gimpel 2016): x Phi(x), or its approximation x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
#include <numbers>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/ops/second.h"
#include "core/backend.h"

namespace plumb {

Tensor gelu(const Tensor& x, Gelu form) {
  detail::check_float("gelu", x);
  Array y = empty_like(x.array());
  Array slope = grad_enabled() && x.requires_grad() ? empty_like(y) : Array();
  kernels(y).gelu_forward(form, x.array(), Array(), y, slope);
  return record_fused(
      "gelu", y, {x}, [slope](const Tensor& dy) { return Tensors{dy * Tensor(slope)}; },
      [x = Saved(x), form](const Tensor& dy) { return Tensors{detail::gelu_backward(form, dy, x)}; });
}

Tensor detail::gelu_backward(Gelu form, const Tensor& dy, const Tensor& x) {
  Array result = empty_like(x.array());
  kernels(result).gelu_second(form, dy.array(), dy.array(), x.array(), result, Out());
  return record_fused(
      "gelu_backward", result, {dy, x},
      [form, dy = Saved(dy), x = Saved(x)](const Tensor& g) {
        Array ddy = empty_like(x.array()), dx = empty_like(ddy);
        kernels(ddy).gelu_second(form, g.array(), dy.array(), x.array(), ddy, dx);
        return Tensors{Tensor(ddy), Tensor(dx)};
      },
      through([form](const Tensors& in) { return in[0] * gelu_slope_composed(in[1], form); }, {dy, x}));
}

Tensor detail::gelu_slope_composed(const Tensor& x, Gelu form) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor square = x * x;
  if (form == Gelu::erf) return 0.5 * (1 + erf(x * (std::numbers::sqrt2 / 2))) + x * exp(square * -0.5) * (c / 2);
  const Tensor t = tanh(c * (x + 0.044715 * (x * square)));
  return 0.5 * (1 + t) + 0.5 * c * x * (1 - t * t) * (1 + 3 * 0.044715 * square);
}

Tensor gelu_composed(const Tensor& x, Gelu form) {
  if (form == Gelu::erf) return 0.5 * x * (1 + erf(x * (std::numbers::sqrt2 / 2)));
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * x * (1 + tanh(c * (x + 0.044715 * (x * x * x))));
}

}  // namespace plumb
