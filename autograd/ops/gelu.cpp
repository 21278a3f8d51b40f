// GELU (Hendrycks, Gimpel 2016): x Phi(x), or x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
#include <numbers>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {

Tensor gelu(const Tensor& x, Gelu form) {
  detail::check_float("gelu", x);
  Array y = empty_like(x.array());
  Array slope = grad_enabled() && x.requires_grad() ? empty_like(y) : Array();
  kernels(y).gelu_forward(form, x.array(), Array(), y, slope);
  return record_fused(
      "gelu", y, {x}, [slope](const Tensor& dy) { return Tensors{dy * Tensor(slope)}; },
      through([form](const Tensors& in) { return gelu_composed(in[0], form); }, {x}));
}

Tensor gelu_composed(const Tensor& x, Gelu form) {
  if (form == Gelu::erf) return 0.5 * x * (1 + erf(x * (std::numbers::sqrt2 / 2)));
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * x * (1 + tanh(c * (x + 0.044715 * (x * x * x))));
}

}  // namespace plumb
