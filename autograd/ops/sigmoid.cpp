// The logistic function, and ops composed of it.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

Tensor sigmoid(const Tensor& x) {
  detail::check_float("sigmoid", x);
  Array y = empty_like(x.array());
  kernels(y).unary(Unary::sigmoid, 0, x.array(), y);
  return record("sigmoid", y, {x},
                [](const Tensor& dy, const Tensor& result) { return Tensors{dy * (result * (1 - result))}; });
}

Tensor silu(const Tensor& x) {
  detail::check_float("silu", x);
  return x * sigmoid(x);
}

// Computed as max(x, 0) + log(1 + e^-|x|), which cannot overflow.
Tensor softplus(const Tensor& x) {
  detail::check_float("softplus", x);
  const Tensor u = x.detach(), y = relu(u) + log1p(exp(-abs(u)));
  return record("softplus", y.array(), {x}, [x = Saved(x)](const Tensor& dy) { return Tensors{dy * sigmoid(x)}; });
}

}  // namespace plumb
