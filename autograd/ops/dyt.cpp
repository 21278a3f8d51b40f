// DyT (Zhu et al. 2025): y = weight t + bias, t = tanh(alpha x). The backward pass computes t again instead of keeping
// it: dx = alpha u, dalpha = sum u x, dweight = sum dy t, dbias = sum dy, with u = weight dy (1 - t^2).
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {

Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias) {
  for (const Tensor& operand : {alpha, weight, bias}) detail::check_operands("dyt", x, operand);
  check(alpha.shape() == Shape{1}, "[dyt] expected alpha [1], got {}", alpha.shape());
  check(x.shape().rank() >= 1 && weight.shape() == Shape{x.dim(-1)} && bias.shape() == weight.shape(),
        "[dyt] expected input [.., {}] for weight {} and bias {}, got {}", weight.numel(), weight.shape(), bias.shape(),
        x.shape());
  Array y = empty_like(x.array());
  kernels(y).dyt_forward(x.array(), alpha.array(), weight.array(), bias.array(), y);
  return record_fused(
      "dyt", y, {x, alpha, weight, bias},
      [x = Saved(x), alpha = Saved(alpha), weight = Saved(weight)](const Tensor& dy) {
        Array dx = empty_like(x.array()), dalpha = empty_like(alpha.array()), dweight = empty_like(weight.array()),
              dbias = empty_like(dweight);
        kernels(dx).dyt_backward(dy.array(), x.array(), alpha.array(), weight.array(), dx, dalpha, dweight, dbias);
        return Tensors{Tensor(dx), Tensor(dalpha), Tensor(dweight), Tensor(dbias)};
      },
      through([](const Tensors& in) { return dyt_composed(in[0], in[1], in[2], in[3]); }, {x, alpha, weight, bias}));
}

Tensor dyt_composed(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias) {
  return weight * tanh(alpha * x) + bias;
}

}  // namespace plumb
